-- Stores loaded values, each where the marker of its load still stands.
--
-- KEYS  1 state, then the values' keys
-- ARGV  1 age of verification, us
--       then, for each value: its marker's token, its life in ms, its body
--
-- Returns {epoch, sequence, now in us, then for each key 1 if stored, else 0}.

local reply = {epoch, sequence, now}
for i = 2, #KEYS do
  local key, token, life, body = KEYS[i], ARGV[3 * i - 4], tonumber(ARGV[3 * i - 3]), ARGV[3 * i - 2]
  local held = redis.pcall('GETRANGE', key, 0, HEAD + 2 + 16)
  local _, marker = marks(held)
  local stored = 0
  if marker and string.sub(held, HEAD + 3) == token then
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
