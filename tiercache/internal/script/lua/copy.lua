-- Stores copies of values that other shards own, each unless there is a newer one.
--
-- KEYS  1 state, then the copies' keys
-- ARGV  1 age of VERIFIED
--       then, for each copy: when it ends, ms by this server's clock; the owner's
--       sequence when it held the value; the value in its owner's envelope,
--       empty if it was deleted
--
-- Returns {epoch, sequence, now in us, then for each copy 1 if stored, else 0}.

local reply = {epoch, sequence, now}
for i = 2, #KEYS do
  local key, ends, asof, value = KEYS[i], ARGV[3 * i - 4], tonumber(ARGV[3 * i - 3]), ARGV[3 * i - 2]
  local held = redis.pcall('GETRANGE', key, 0, 18)
  local newer, stored = false, 0
  if type(held) == 'string' and #held == 19 then
    local e, s = struct.unpack('>I8I8', held, 4)
    newer = string.sub(held, 1, 3) == 'tc\1' and e == epoch and s > asof
  end
  if not newer and now < tonumber(ends) * 1000 then
    -- An envelope's head, see envelope.lua, with the owner's sequence.
    redis.call('SET', key, 'tc\1' .. struct.pack('>I8I8I8I8', epoch, asof, ends, 0) .. value, 'PXAT', ends)
    stored = 1
  end
  reply[#reply + 1] = stored
end
if changed then save() end
return reply
