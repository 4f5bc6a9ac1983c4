-- Applies one write to many replicas of the node it runs on. No key is
-- declared: they lie in different slots, and the server lets a script without a
-- shebang touch any that is local. One that is not makes its command fail, and
-- is reported, so every command here is a pcall.
--
-- ARGV  1 kind: restore or members (replace from a source, lua/source.lua),
--         empty (replace by nothing), delta, clear
--       2 the set's name
--       3 number of the write, 4 base: the number that a delta builds on
--       5 count of the set after the write, 6 the stamp to leave
--       7 adopt: 1 overwrites keys that carry no stamp
--       8 key of the source; life of a cleared set's stamp, ms
--       9 how many members a delta adds, 10 how many it removes
--      11.. those members, then the tags of the slots
--
-- Returns a flat list {position of the tag, outcome, ...} of the slots that are
-- not done: "newer NUMBER", "behind", "foreign", "redo" (declare the keys and
-- try again: the slot is moving or elsewhere), or an error. {0, "source"}: there
-- is no source, and nothing was done.

local kind, name, number, base, count, after = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local adopt, extra, nadd, nrem = ARGV[7] == '1', ARGV[8], tonumber(ARGV[9]), tonumber(ARGV[10])
local first = 11 + nadd + nrem
local this = tonumber(number)
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
  for i = from, to, 5000 do
    local err = fail(pcall(command, replica, unpack(list, i, math.min(i + 4999, to))))
    if err then return err end
  end
end

local function write(replica, stamp)
  local err
  if kind == 'restore' then
    err = fail(pcall('RESTORE', replica, 0, payload, 'REPLACE'))
  elseif kind == 'delta' then
    err = each('SADD', replica, ARGV, 11, 10 + nadd) or each('SREM', replica, ARGV, 11 + nadd, 10 + nadd + nrem)
  else
    err = fail(pcall('DEL', replica))
    if kind == 'members' then err = err or each('SADD', replica, members, 1, #members) end
  end
  if err then return err end
  if kind == 'clear' then return fail(pcall('SET', stamp, after, 'PX', extra)) end
  return fail(pcall('SET', stamp, after))
end

local function apply(replica)
  local stamp = replica .. ':stamp'
  local held, size = pcall('GET', stamp), pcall('SCARD', replica)
  if fail(held) or fail(size) then return 'redo' end
  local n, c = '0', -1
  if held then
    local hn, hc = match(held, '^sk1 (%d+) (%-?%d+) %x+$')
    if hn then n, c = hn, tonumber(hc) elseif not adopt then return 'foreign' end
  end
  if c == -1 and size > 0 and not adopt then return 'foreign' end
  local last = tonumber(n)
  if last > this then return 'newer ' .. n end
  if kind == 'delta' then
    if last == this and count == size then return nil end
    if n ~= base or c ~= size then return 'behind' end
  elseif kind ~= 'restore' then
    -- In a slot that is moving away DEL works and SADD after it does not. A key
    -- that never exists tells.
    if fail(pcall('EXISTS', replica .. ':absent')) then return 'redo' end
  end
  local err = write(replica, stamp)
  return err and (find(err, 'non local', 1, true) and 'redo' or err)
end

local out = {}
for i = first, #ARGV do
  local what = apply(name .. ':{' .. ARGV[i] .. '}')
  if what then
    out[#out + 1] = i - first + 1
    out[#out + 1] = what
  end
end
return out
