-- Reads values once more, and leaves a marker in the place of each that is
-- missing. A marker that stands is shared: nothing was written since it was left.
--
-- KEYS  1 state, then the values' keys
-- ARGV  1 age of VERIFIED
--       2 life of a marker, ms
--       3 token of a new marker, 16 bytes
--       then, for each key: '', or the head of what counts as missing (a value
--       that nobody can read, a marker that was waited for too long)
--
-- Returns {epoch, sequence, now in us, then for each key its value or marker}, or
-- {0, 2, now} where nobody watched the shard.

if unwatched() then
  if changed then save() end
  return {0, 2, now}
end
local life, reply = tonumber(ARGV[2]), {epoch, sequence, now}
local expiry = math.floor(now / 1000) + life
for i = 2, #KEYS do
  local value = redis.pcall('GET', KEYS[i])
  local current, marker = marks(value)
  local over = ARGV[i + 2]
  if not current or over ~= '' and string.sub(value, 1, HEAD) == over then
    value = head(expiry) .. string.char(MARKER, 0) .. ARGV[3]
    redis.call('SET', KEYS[i], value, 'PXAT', expiry)
  elseif marker then
    redis.call('PEXPIREAT', KEYS[i], expiry, 'GT')
  end
  reply[#reply + 1] = value
end
if changed then save() end
return reply
