-- Measures a set and a stamp as this server would keep them, and deletes both.
--
-- KEYS[1]  where the set is built  KEYS[2] where the stamp is
-- ARGV     1 a stamp, 2.. the members
--
-- Returns {bytes of the set, bytes of the stamp, the set's encoding}; sizes
-- include the key, as MEMORY USAGE counts.

redis.call('DEL', KEYS[1])
for i = 2, #ARGV, 5000 do
  redis.call('SADD', KEYS[1], unpack(ARGV, i, math.min(i + 4999, #ARGV)))
end
redis.call('SET', KEYS[2], ARGV[1])
local set, stamp, encoding = 0, redis.call('MEMORY', 'USAGE', KEYS[2]), 'none'
if #ARGV > 1 then
  set = redis.call('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', 0)
  encoding = redis.call('OBJECT', 'ENCODING', KEYS[1])
end
redis.call('DEL', KEYS[1], KEYS[2])
return {set, stamp, encoding}
