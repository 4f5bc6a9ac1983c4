-- Reads a value of which copies are to be made, and marks its key for the writes
-- that follow.
--
-- KEYS  1 state
--       2 the value's key
-- ARGV  1 age of VERIFIED
--       2 life of copies, us
--       3 their life that must be left for nothing to be done, us
--
-- Returns {epoch, sequence, now in us, the value, until when copies may be read},
-- the last 0 if there is no value that can be copied, negative if another reader marked the key of late; or
-- {0, 2, now} where nobody watched the shard.

if unwatched() then
  if changed then save() end
  return {0, 2, now}
end
local value, ends = redis.pcall('GET', KEYS[2]), 0
local current, marker = marks(value)
if current and not marker and math.floor(string.byte(value, HEAD + 1) / 4) % 2 == 0 then -- tags are of one shard
  ends = tonumber(redis.call('ZSCORE', copied, KEYS[2]) or 0)
  if ends - now > tonumber(ARGV[3]) then
    ends = -ends
  else
    ends = now + tonumber(ARGV[2])
    redis.call('ZREMRANGEBYSCORE', copied, '-inf', now)
    redis.call('ZADD', copied, ends, KEYS[2])
    redis.call('PEXPIRE', copied, math.ceil(tonumber(ARGV[2]) / 1000))
    local bytes = {}
    for i = 1, 16 do bytes[i] = 0 end
    for _, key in ipairs(redis.call('ZRANGE', copied, 0, -1)) do
      local byte, value = bit(key)
      if math.floor(bytes[byte] / value) % 2 == 0 then bytes[byte] = bytes[byte] + value end
    end
    hot, changed = string.char(unpack(bytes)), true
  end
end
if changed then save() end
return {epoch, sequence, now, value, ends}
