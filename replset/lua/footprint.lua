-- Measures what a replica and its stamp take of this server's memory: it builds
-- some under other names, measures and deletes them. MEMORY USAGE is right for
-- what is one allocation. For hash tables it was wrong by half on some servers
-- (it knows neither the allocator's size classes nor every way of storing them),
-- so the allocator's count before and after is taken; no other command runs
-- meanwhile.
--
-- KEYS[1]  the replica's name here, KEYS[2] the stamp's; numbers are appended
-- ARGV     1 a stamp, 2.. the members
--
-- Returns {bytes of a replica and its stamp, the set's encoding}, or {-1, ""}
-- while a background thread is freeing memory, which would be counted too.

local function info() return redis.call('INFO', 'memory') end
local function used(text) return tonumber(string.match(text, 'used_memory:(%d+)')) end

local payload

-- A restored set is packed more tightly than one that was added to.
local function build(from, to)
  for copy = from, to do
    redis.call('SET', KEYS[2] .. copy, ARGV[1])
    if payload then
      redis.call('RESTORE', KEYS[1] .. copy, 0, payload)
    else
      for i = 2, #ARGV, 5000 do
        redis.call('SADD', KEYS[1] .. copy, unpack(ARGV, i, math.min(i + 4999, #ARGV)))
      end
    end
  end
end

local function forget(last)
  for copy = 0, last do redis.call('DEL', KEYS[1] .. copy, KEYS[2] .. copy) end
end

build(0, 0)
local encoding, bytes = 'none', redis.call('MEMORY', 'USAGE', KEYS[2] .. 0)
if #ARGV > 1 then
  local dumped = redis.pcall('DUMP', KEYS[1] .. 0)
  if restores(dumped, #ARGV - 1) and not redis.pcall('RESTORE', KEYS[1] .. 0, 0, dumped, 'REPLACE').err then
    payload = dumped
  end
  encoding = redis.call('OBJECT', 'ENCODING', KEYS[1] .. 0)
  bytes = bytes + redis.call('MEMORY', 'USAGE', KEYS[1] .. 0)
end
if encoding ~= 'hashtable' then
  forget(0)
  return {bytes, encoding}
end

if tonumber(string.match(info(), 'lazyfree_pending_objects:(%d+)') or 0) > 0 then
  forget(0)
  return {-1, ''}
end
-- Enough copies to make the count steady, few enough for some milliseconds. The
-- first ones fill the server's own buffers, and are not counted.
local copies = math.max(1, math.min(1000, math.floor(10000 / #ARGV), math.floor(2000000 / bytes)))
local warm = math.ceil(copies / 4)
build(1, warm)
-- A table of the server's own that comes or goes in between would be counted as
-- well: it falls into one of three batches, and the one in the middle counts.
local last, each, counts = warm, math.ceil(copies / 3), {}
for batch = 1, copies < 3 and 1 or 3 do
  local before = used(info())
  build(last + 1, last + each)
  last = last + each
  counts[batch] = (used(info()) - before) / each
end
table.sort(counts)
forget(last)
return {math.ceil(counts[math.ceil(#counts / 2)]), encoding}
