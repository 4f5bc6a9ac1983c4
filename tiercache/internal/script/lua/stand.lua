-- At a shard that stands in for others, which are out.
--
-- KEYS  2 outages, then the notes of each of them
-- ARGV  2 their number, then for each: its name, and the number of its outage in which
--         the caller believes; 0 if it only leaves a note
--
-- Returns {0, 1, now} where an outage is not open with that number. Values are of the
-- youngest outage. What follows finds KEYS and ARGV without these.

local outage, lists = 0, {}
for i = 1, tonumber(table.remove(ARGV, 2)) do
  lists[i] = table.remove(KEYS, 3)
  local name, number = table.remove(ARGV, 2), tonumber(table.remove(ARGV, 2))
  local open, till, _, held = outage_of(name)
  if number == 0 then
    if not held then set_outage(name, 0, 0, 0) end
  elseif open ~= number or till <= now then
    return {0, 1, now}
  end
  outage = math.max(outage, number)
end
table.remove(KEYS, 2)

-- A list that is full gets a note for every key.
local MOST = 30000
local function leave(key)
  for _, list in ipairs(lists) do
    local full = redis.call('ZCARD', list) >= MOST and not redis.call('ZSCORE', list, key)
    recount(noted + redis.call('ZADD', list, sequence, full and '#all' or key))
  end
end
