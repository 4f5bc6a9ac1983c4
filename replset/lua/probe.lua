-- What may a script do here that declares no key?
--
-- ARGV[1]  a key of this node that does not exist
--
-- Returns {1 if it may touch undeclared keys, 1 if it may RESTORE}.

local touch = redis.pcall('GET', ARGV[1])
local restore = redis.pcall('RESTORE', ARGV[1], 0, 'not a payload')
local function failed(reply) return type(reply) == 'table' and reply.err end
-- A server that would run RESTORE says that the payload is wrong.
return {failed(touch) and 0 or 1, string.find(failed(restore) or '', 'checksum', 1, true) and 1 or 0}
