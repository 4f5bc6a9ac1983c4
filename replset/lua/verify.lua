-- Compares replicas of the node it runs on with what they should be. Like
-- lua/node.lua it declares no key.
--
-- ARGV  1 the set's name
--       2 the stamp that each replica should have
--       3 key of a set with the members that each should hold (lua/source.lua);
--         empty where there are none
--       4.. the tags of the slots
--
-- Returns a flat list {position of the tag, outcome, ...} of the slots that are
-- not as they should be: "missing", "older NUMBER", "newer NUMBER", "content",
-- "extra" (all the members, and more), "type", "foreign"; or "redo": the slot is
-- elsewhere. {0, "source"}: there is no source, and nothing was compared.

local name, want, source = ARGV[1], ARGV[2], ARGV[3]
local pcall, match = redis.pcall, string.match
local wantNumber, wantCount = match(want, '^sk1 (%d+) (%-?%d+) ')
wantNumber, wantCount = tonumber(wantNumber), tonumber(wantCount)

local members = {}
if source ~= '' then
  members = pcall('SMEMBERS', source)
  if members.err or #members == 0 then return {0, 'source'} end
end

local function failed(reply) return type(reply) == 'table' and reply.err end
local function wrongtype(reply) return failed(reply) and string.find(reply.err, 'WRONGTYPE', 1, true) end

-- Replicas written alike have the same dump, and that costs half of asking for
-- each member. What differs is asked: the order of a set's members is not its
-- content. Sets of other orders without end are not worth their dumps.
local known, kinds = {}, 0
local dumps = #members > 0 and #members <= 5000

local function compare(replica)
  local held, dump = pcall('GET', replica .. ':stamp'), false
  if dumps and held == want then
    dump = pcall('DUMP', replica)
    if known[dump] then return nil end
  end
  local size = pcall('SCARD', replica)
  if wrongtype(held) then return 'foreign' end
  if failed(held) then return 'redo' end
  if wrongtype(size) then return held and 'type' or 'foreign' end
  if failed(size) then return 'redo' end
  if held ~= want then
    if not held then
      if size > 0 then return 'foreign' end
      return wantCount ~= -1 and 'missing' or nil
    end
    local n, c = match(held, '^sk1 (%d+) (%-?%d+) %x+$')
    if not n then return 'foreign' end
    if tonumber(n) > wantNumber then return 'newer ' .. n end
    if tonumber(n) < wantNumber then return 'older ' .. n end
    return 'content'
  end
  if wantCount == -1 then return size > 0 and 'extra' or nil end
  if size == 0 and wantCount > 0 then return 'missing' end
  local hits = 0
  for i = 1, #members, 5000 do
    for _, is in ipairs(pcall('SMISMEMBER', replica, unpack(members, i, math.min(i + 4999, #members)))) do
      hits = hits + is
    end
  end
  if hits ~= wantCount then return 'content' end
  if size > wantCount then return 'extra' end
  if type(dump) == 'string' then
    known[dump], kinds = true, kinds + 1
    dumps = kinds < 8
  end
  return nil
end

local out = {}
for i = 4, #ARGV do
  local what = compare(name .. ':{' .. ARGV[i] .. '}')
  if what then
    out[#out + 1] = i - 3
    out[#out + 1] = what
  end
end
return out
