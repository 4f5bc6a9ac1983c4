-- Leaves a set's new content on one node, for the steps that copy it to the
-- node's replicas: members then travel once per node.
--
-- KEYS[1]  the source, in one of the node's slots
-- ARGV     1 its life, ms
--          2 how to copy: auto, or members where RESTORE is refused
--          3.. the members
--
-- Returns "restore" if the source holds a DUMP of the set, "members" if it is
-- the set itself.

local source, life = KEYS[1], ARGV[1]
redis.call('DEL', source)
for i = 3, #ARGV, 5000 do
  redis.call('SADD', source, unpack(ARGV, i, math.min(i + 4999, #ARGV)))
end
redis.call('PEXPIRE', source, life)
if ARGV[2] ~= 'auto' then return 'members' end

local payload = redis.pcall('DUMP', source)
if not restores(payload, #ARGV - 2) then return 'members' end
-- May this user RESTORE at all? It also proves the payload.
local try = redis.pcall('RESTORE', source, life, payload, 'REPLACE')
if type(try) == 'table' and try.err then return 'members' end
redis.call('SET', source, payload, 'PX', life)
return 'restore'
