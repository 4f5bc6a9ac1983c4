-- Compares the server's run id with the state's, tells and learns which shards are
-- out, and how many notes lie here.
--
-- KEYS  1 state
--       2 outages
-- ARGV  1 age of VERIFIED
--       2 for how long VERIFIED says that somebody watched the shard, us
--       3 1 to go on watching; 0 from who has this shard out
--       4 VERIFIED of a shard that nobody watched, of which the caller has seen to it
--         that it holds nothing old; else 0
--       5 how long an outage stands, us
--       then, for each shard that the caller has out: its name, and how long ago, in us,
--         the caller last used it
--
-- Returns {epoch, sequence, now in us, VERIFIED as it was, 1 if somebody watched, else 0,
-- SINCE, then for each outage and each shard with notes: name, number, for how long it
-- stands in us, notes}. Who declares a shard out takes on an outage that stands only if it
-- began after he last used the shard: so nothing of an outage before that counts.

local found = verified
local watched = verified <= now and now - verified < tonumber(ARGV[2])
if watched and ARGV[3] == '1' or verified == tonumber(ARGV[4]) then
  verified, watched = now, true
end
for i = 6, #ARGV, 2 do
  local number, till, claim = outage_of(ARGV[i])
  if till <= now or number <= now - tonumber(ARGV[i + 1]) then number = now end
  set_outage(ARGV[i], number, now + tonumber(ARGV[5]), claim)
end
local outages, count = {}, 0
local prefix = string.sub(KEYS[1], 1, -6) .. 'notes:'
for _, name in ipairs(redis.call('HKEYS', KEYS[2])) do
  local number, till = outage_of(name)
  local n = redis.call('ZCARD', prefix .. name)
  count = count + n
  if till <= now and n == 0 then
    redis.call('HDEL', KEYS[2], name)
  else
    outages[#outages + 1] = {name, number, math.max(till - now, 0), n}
  end
end
if count ~= noted then -- evicted, or of another run
  since = now
  recount(count)
end
save()
local reply = {epoch, sequence, now, found, watched and 1 or 0, since}
for _, o in ipairs(outages) do
  for _, v in ipairs(o) do reply[#reply + 1] = v end
end
return reply
