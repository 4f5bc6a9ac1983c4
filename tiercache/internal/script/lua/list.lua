-- The list of shards, the same on each of them: the highest number counts. Tells also
-- which lists processes were given.
--
-- KEYS  1 state
--       2 the list: a hash of its number, its text, and since when it lies here, us
--       3 a sorted set: a fingerprint for each list that processes were given, with when
--         one last said so, us
-- ARGV  1 age of VERIFIED
--       2 the number of the caller's list
--       3 its text
--       4 the fingerprint of what the caller was given
--       5 for how long that counts, us
--       6 the number of the latest list that the caller's may replace
--       7 channel
--
-- Returns {epoch, sequence, now in us, the number, for how long it has lain here in us, the
-- text, then the fingerprints}.

-- What no cache has written there is no list, and makes room for one.
local held = redis.pcall('HMGET', KEYS[2], 'number', 'text', 'since')
local number, text, since = tonumber(held[1] or 0), held[2] or '', tonumber(held[3] or 0)
local read, value = pcall(cjson.decode, text)
local valid = read and type(value) == 'table' and type(value.shards) == 'table' and #value.shards > 0
if not valid or not number or not since or number < 0 or number >= 2 ^ 53 or number % 1 ~= 0 then
  redis.call('DEL', KEYS[2])
  number, text, since = 0, '', 0
end
if tonumber(ARGV[2]) > number and number <= tonumber(ARGV[6]) then
  if (cjson.decode(ARGV[3]).fresh or 0) > number then -- a list asks for a new epoch
    epoch = math.max(now, epoch + 1)
    sequence = math.max(epoch, sequence) + 1
    redis.call('PUBLISH', ARGV[7], struct.pack('>I8I8', epoch, sequence))
  end
  number, text, since = tonumber(ARGV[2]), ARGV[3], now
  redis.call('HSET', KEYS[2], 'number', ARGV[2], 'text', text, 'since', string.format('%d', since))
end
list = number
if type(redis.pcall('ZADD', KEYS[3], now, ARGV[4])) ~= 'number' then
  redis.call('DEL', KEYS[3])
  redis.call('ZADD', KEYS[3], now, ARGV[4])
end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now - tonumber(ARGV[5]))
redis.call('PEXPIRE', KEYS[3], math.ceil(tonumber(ARGV[5]) / 1000))
save()
local reply = {epoch, sequence, now, number, math.max(now - since, 0), text}
for _, print in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do reply[#reply + 1] = print end
return reply
