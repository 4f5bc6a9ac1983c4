-- Applies one write to many replicas of the node it runs on. No key is
-- declared: they lie in different slots, and the server lets a script without a
-- shebang touch any that is local. One that is not makes its command fail, and
-- is reported, so every command here is a pcall.
--
-- ARGV  1 kind: restore or members (replace from a source, lua/source.lua),
--         empty (replace by nothing), delta, clear
--       2 the set's name
--       3 number of the write, 4 base: the number that a delta builds on
--       5 the stamp that most replicas will hold, that of the base, or empty: it
--         saves taking it apart; 6 the stamp to leave
--       7 adopt: 1 overwrites keys that carry no stamp
--       8 key of the source; life of a cleared set's stamp, ms
--       9 how many members a delta adds, 10 how many it removes
--      11 by how much a delta changes the set's size
--      12.. those members, then the tags of the slots
--
-- Returns a flat list {position of the tag, outcome, ...} of the slots that are
-- not done: "newer NUMBER", "behind", "redo" (ask again with the keys declared:
-- the slot is moving or elsewhere, or the key looks foreign), or an error.
-- {0, "source"}: there is no source, and nothing was done.

local kind, name, this, base, usual, after = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]
local adopt, extra, nadd, nrem, grows = ARGV[7] == '1', ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local first = 12 + nadd + nrem
local pcall, find, match = redis.pcall, string.find, string.match

local payload, members
if kind == 'restore' then
  payload = pcall('GET', extra)
  if type(payload) ~= 'string' then return {0, 'source'} end
elseif kind == 'members' then
  members = pcall('SMEMBERS', extra)
  if members.err or #members == 0 then return {0, 'source'} end
end

local function fail(reply) return type(reply) == 'table' and reply.err end

-- unpack is limited by Lua's C stack, 8000 values.
local function each(command, replica, list, from, to)
  local changed = 0
  for i = from, to, 5000 do
    local n = pcall(command, replica, unpack(list, i, math.min(i + 4999, to)))
    if type(n) == 'table' then return 0, n.err end
    changed = changed + n
  end
  return changed
end

-- A replica that something else changed answers with other counts; it is copied
-- whole then. Its stamp stays, so readers refuse it meanwhile.
local function change(replica)
  local removed = 0
  local added, err = each('SADD', replica, ARGV, 12, 11 + nadd)
  if not err then removed, err = each('SREM', replica, ARGV, 12 + nadd, 11 + nadd + nrem) end
  return err or added - removed ~= grows and 'behind'
end

local function write(replica)
  if kind == 'delta' then return change(replica) end
  if kind == 'restore' then return fail(pcall('RESTORE', replica, 0, payload, 'REPLACE')) end
  -- In a slot that is moving away DEL works and SADD after it does not; with a key
  -- beside it that never exists, DEL does not either.
  local err = fail(pcall('DEL', replica, replica .. ':absent'))
  if kind == 'members' and not err then err = select(2, each('SADD', replica, members, 1, #members)) end
  return err
end

-- back gives a replica its old stamp again. Where the usual one is expected the
-- new one is set to learn it, a command less than GET and SET.
local function back(stamp, held)
  if held then pcall('SET', stamp, held, 'KEEPTTL') else pcall('DEL', stamp) end
end

-- usually changes a replica whose stamp is the usual one, and returns false where
-- it is not.
local function usually(replica, stamp)
  local held = pcall('SET', stamp, after, 'KEEPTTL', 'GET')
  if fail(held) then return 'redo' end
  local err = false
  if held == usual then
    err = write(replica)
    if not err then return nil end
  end
  back(stamp, held)
  return err
end

-- otherwise takes the stamp apart first.
local function otherwise(replica, stamp)
  local held = pcall('GET', stamp)
  if fail(held) then return 'redo' end
  if held then
    local n, c = match(held, '^sk1 (%d+) (%-?%d+) %x+$')
    if not n then return 'redo' end
    if tonumber(n) > this then return 'newer ' .. n end
    if kind == 'delta' then
      if tonumber(n) == this then return nil end
      if n ~= base then return 'behind' end
    end
    if c == '-1' and not adopt and pcall('EXISTS', replica) ~= 0 then return 'redo' end
  elseif kind == 'delta' then
    return 'behind'
  elseif not adopt and pcall('EXISTS', replica, stamp) ~= 0 then
    return 'redo'
  end
  local err = write(replica)
  if err then return err end
  if kind == 'clear' then return fail(pcall('SET', stamp, after, 'PX', extra)) end
  return fail(pcall('SET', stamp, after))
end

local expected = usual ~= '' and kind ~= 'clear'
local function apply(replica)
  local stamp, what = replica .. ':stamp', false
  if expected then what = usually(replica, stamp) end
  if what == false then return otherwise(replica, stamp) end
  return what
end

local out, open, last = {}, name .. ':{', #ARGV

-- quickly applies a short delta from the tag at position i on, for as long as
-- replicas have the usual stamp and change as they should, and returns where it
-- ended and why. What it calls for a replica is three commands and nothing else:
-- more would be a tenth of its time.
local quick = expected and kind == 'delta' and nadd <= 5000 and nrem <= 5000
local adds = quick and {unpack(ARGV, 12, 11 + nadd)}
local rems = quick and {unpack(ARGV, 12 + nadd, 11 + nadd + nrem)}

local function quickly(i)
  local a, r = 0, 0 -- the answers of the replica before
  while i <= last do
    local replica, added, removed = open .. ARGV[i] .. '}', 0, 0
    local stamp = replica .. ':stamp'
    local held = pcall('SET', stamp, after, 'KEEPTTL', 'GET')
    if held ~= usual then
      if not fail(held) then back(stamp, held) end
      return i, false
    end
    if nadd > 0 then added = pcall('SADD', replica, unpack(adds)) end
    local err = added ~= a and fail(added)
    if nrem > 0 and not err then removed = pcall('SREM', replica, unpack(rems)) end
    err = err or removed ~= r and fail(removed)
    if err or added - removed ~= grows then
      back(stamp, held)
      return i, err or 'behind'
    end
    a, r, i = added, removed, i + 1
  end
  return i
end

local i = first
while i <= last do
  local what = false
  if quick then i, what = quickly(i) end
  if what == false then what = apply(open .. ARGV[i] .. '}') end
  if what then
    out[#out + 1] = i - first + 1
    out[#out + 1] = find(what, 'non local', 1, true) and 'redo' or what
  end
  i = i + 1
end
return out
