-- Removes notes whose keys were deleted at their owner. One that was left again since it
-- was read stays.
--
-- KEYS  1 state
--       2 outages
--       3 the notes of one shard
-- ARGV  1 age of VERIFIED
--       2 that shard's name
--       3 1 to let others read, 0 to keep the claim
--       then each note and its sequence, as they were read
--
-- Returns {epoch, sequence, now in us}.

local gone = 0
for i = 4, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[3], ARGV[i]) == ARGV[i + 1] then
    gone = gone + redis.call('ZREM', KEYS[3], ARGV[i])
  end
end
if ARGV[3] == '1' then
  local number, till, _, held = outage_of(ARGV[2])
  if held then set_outage(ARGV[2], number, till, 0) end
end
recount(math.max(noted - gone, 0))
save()
return {epoch, sequence, now}
