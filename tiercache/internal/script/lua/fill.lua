-- Stores loaded values, each where still stands what its load began with: a
-- marker, or the value that it renews. No two writes leave the same head, so
-- where the head is the same, nothing was written.
--
-- KEYS  1 state, then the values' keys
-- ARGV  1 age of VERIFIED
--       then, for each value: the token of its marker, or the head of the value
--       before; its life in ms, its body
--
-- Returns {epoch, sequence, now in us, then for each key 1 if stored, else 0}.

local reply = {epoch, sequence, now}
for i = 2, #KEYS do
  local key, token, life, body = KEYS[i], ARGV[3 * i - 4], tonumber(ARGV[3 * i - 3]), ARGV[3 * i - 2]
  local held = redis.pcall('GETRANGE', key, 0, HEAD + 2 + 16)
  local current, marker = marks(held)
  local stored = 0
  if marker and string.sub(held, HEAD + 3) == token or current and string.sub(held, 1, HEAD) == token then
    local expiry = math.floor(now / 1000) + life
    if life > 0 then
      redis.call('SET', key, head(expiry) .. body, 'PXAT', expiry)
    else
      redis.call('UNLINK', key)
    end
    stored = 1
  end
  reply[#reply + 1] = stored
end
if changed then save() end
return reply
