-- Reads notes, for one reader at a time.
--
-- KEYS  1 state
--       2 outages
--       3 the notes of one shard
-- ARGV  1 age of VERIFIED
--       2 that shard's name
--       3 the claim that the caller was given before; 0 at first
--       4 how long a claim holds, us
--       5 how many notes
--
-- Returns {epoch, sequence, now in us, claim, then each note and its sequence}; claim
-- is 0 where somebody else has one.

local number, till, claim = outage_of(ARGV[2])
if claim > now and claim ~= tonumber(ARGV[3]) then return {epoch, sequence, now, 0} end
claim = now + tonumber(ARGV[4])
set_outage(ARGV[2], number, till, claim)
if changed then save() end
local reply = {epoch, sequence, now, claim}
for _, v in ipairs(redis.call('ZRANGE', KEYS[3], 0, tonumber(ARGV[5]) - 1, 'WITHSCORES')) do reply[#reply + 1] = v end
return reply
