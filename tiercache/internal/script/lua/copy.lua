-- Stores a copy of a value that another shard owns, unless there is a newer one.
--
-- KEYS  1 state
--       2 the copy's key
-- ARGV  1 age of VERIFIED
--       2 when the copy ends, ms by this server's clock
--       3 the owner's sequence when it held the value
--       4 the value in its owner's envelope; empty, if it was deleted
--
-- Returns {epoch, sequence, now in us, 1 if stored, else 0}.

local ends, asof, newer, stored = tonumber(ARGV[2]), tonumber(ARGV[3]), false, 0
local held = redis.pcall('GETRANGE', KEYS[2], 0, 18)
if type(held) == 'string' and #held == 19 then
  local e, s = struct.unpack('>I8I8', held, 4)
  newer = string.sub(held, 1, 3) == 'tc\1' and e == epoch and s > asof
end
if not newer and now < ends * 1000 then
  -- An envelope's head, see envelope.lua, with the owner's sequence.
  redis.call('SET', KEYS[2], 'tc\1' .. struct.pack('>I8I8I8I8', epoch, asof, ends, 0) .. ARGV[4], 'PXAT', ARGV[2])
  stored = 1
end
if changed then save() end
return {epoch, sequence, now, stored}
