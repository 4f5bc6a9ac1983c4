-- Stores an operation on a replica, but only if the replica stands.
--
-- KEYS[1] destination  KEYS[2] replica  KEYS[3] its stamp  KEYS[4..] operands
-- ARGV[1] SINTERSTORE, or ZINTERSTORE, which keeps the first operand's scores
--
-- Returns {stamp, size of the replica, stored}; stored is -1 where the stamp and
-- the size do not fit, and the destination is then untouched.

local stamp, size = redis.call('GET', KEYS[3]), redis.call('SCARD', KEYS[2])
if not stamp then return {false, size, -1} end
local count = string.match(stamp, '^sk1 %d+ (%-?%d+) %x+$')
if tonumber(count or -1) ~= size then return {stamp, size, -1} end
if ARGV[1] == 'ZINTERSTORE' then
  return {stamp, size, redis.call(ARGV[1], KEYS[1], 2, KEYS[4], KEYS[2], 'WEIGHTS', 1, 0)}
end
local operands = {unpack(KEYS, 4)}
operands[#operands + 1] = KEYS[2]
return {stamp, size, redis.call(ARGV[1], KEYS[1], unpack(operands))}
