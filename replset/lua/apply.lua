-- Applies one write to one replica: checks the order, changes the set, sets the
-- stamp, in one atomic step. Declared keys only, all in one slot.
--
-- KEYS[1]  the replica, a set
-- KEYS[2]  its stamp, "sk1 NUMBER COUNT DIGEST"
-- KEYS[3]  a key that never exists. While the slot moves, the server refuses a
--          command with present and absent keys (TRYAGAIN) before this runs:
--          DEL would succeed there and SADD fail. Left out when moving is 1.
-- ARGV     1 kind: replace, delta, clear
--          2 number of the write; empty at home, where the number is taken
--          3 base: the number a delta builds on; at home, the number that must
--            still stand there, 0 for none
--          4 floor: a number taken here is greater
--          5 count and 6 digest of the set after the write; empty for a delta
--            at home, which works them out
--          7 adopt: 1 overwrites keys that carry no stamp
--          8 moving: 1 never deletes the replica on the way to its new content
--          9 life of a cleared set's stamp, ms
--         10 how many of the members that follow are added; the rest are removed
--
-- Returns "ok STAMP", or "newer STAMP", "behind", "contended", "missing",
-- "drifted", "foreign KEY".

local replica, stamp = KEYS[1], KEYS[2]
local kind, number, base, floor, count, digest = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local adopt, moving = ARGV[7] == '1', ARGV[8] == '1'
local first, added = 11, tonumber(ARGV[10])
local home = number == ''

local function wrongtype(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'WRONGTYPE', 1, true)
end

local size, other = redis.pcall('SCARD', replica), false
if wrongtype(size) then
  size, other = 1, true
elseif type(size) == 'table' then
  return size
end

local held = redis.pcall('GET', stamp)
local n, c, d = '0', '-1', '0'
if wrongtype(held) then
  if not adopt then return 'foreign ' .. stamp end
elseif type(held) == 'table' then
  return held
elseif held then
  local hn, hc, hd = string.match(held, '^sk1 (%d+) (%-?%d+) (%x+)$')
  if hn then
    n, c, d = hn, hc, hd
  elseif not adopt then
    return 'foreign ' .. stamp
  end
end
-- A stamp marks the place as ours, whatever stands there now.
if c == '-1' and size > 0 and not adopt then return 'foreign ' .. replica end

if home then
  if n ~= base then return 'contended' end
  if kind == 'delta' then
    if c == '-1' or (size == 0 and c ~= '0') then return 'missing' end
    if other or tonumber(c) ~= size then return 'drifted' end
  end
  local now = redis.call('TIME')
  number = string.format('%.0f', math.max(tonumber(n) + 1, tonumber(floor) + 1, now[1] * 1000000 + now[2]))
else
  local last, this = tonumber(n), tonumber(number)
  if last > this then return 'newer ' .. held end
  if kind == 'delta' then
    if last == this and tonumber(count) == size and not other then return 'ok ' .. held end
    if n ~= base or tonumber(c) ~= size or other then return 'behind' end
  end
end

-- unpack is limited by Lua's C stack, 8000 values.
local function each(command, list, from, to)
  for i = from, to, 5000 do
    redis.call(command, replica, unpack(list, i, math.min(i + 4999, to)))
  end
end

if kind == 'clear' then
  redis.call('DEL', replica)
  local after = 'sk1 ' .. number .. ' -1 000000000000'
  redis.call('SET', stamp, after, 'PX', ARGV[9])
  return 'ok ' .. after
elseif kind == 'replace' then
  if moving and added > 0 and not other then
    local keep, gone = {}, {}
    for i = first, #ARGV do keep[ARGV[i]] = true end
    for _, m in ipairs(redis.call('SMEMBERS', replica)) do
      if not keep[m] then gone[#gone + 1] = m end
    end
    each('SADD', ARGV, first, #ARGV)
    each('SREM', gone, 1, #gone)
  else
    redis.call('DEL', replica)
    each('SADD', ARGV, first, #ARGV)
  end
elseif home then
  local sum, total = tonumber(d, 16), size
  local function hash(m) return tonumber(string.sub(redis.sha1hex(m), 1, 12), 16) end
  for i = first, #ARGV do
    local m = ARGV[i]
    if i < first + added then
      if redis.call('SADD', replica, m) == 1 then
        total, sum = total + 1, (sum + hash(m)) % 281474976710656
      end
    elseif redis.call('SREM', replica, m) == 1 then
      total, sum = total - 1, (sum - hash(m)) % 281474976710656
    end
  end
  count = string.format('%d', total)
  digest = string.format('%06x%06x', math.floor(sum / 16777216), sum % 16777216)
else
  each('SADD', ARGV, first, first + added - 1)
  each('SREM', ARGV, first + added, #ARGV)
end

local after = 'sk1 ' .. number .. ' ' .. count .. ' ' .. digest
redis.call('SET', stamp, after)
return 'ok ' .. after
