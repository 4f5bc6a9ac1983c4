-- The notes that lie here: keys that were written while the shard that owns them was
-- out, each with the sequence of the last such write, a sorted set a shard.
local noted, since = struct.unpack('>I8I8', tail)
local function recount(n)
  noted = n
  tail = struct.pack('>I8I8', noted, since) .. string.sub(tail, 17)
end

-- An outage is {number, until, claim}: what it is known by, the clock in us when it was
-- begun, 0 for none; how long it stands; until when somebody reads its notes.
local function outage_of(name)
  local held = redis.call('HGET', KEYS[2], name)
  if type(held) ~= 'string' or #held ~= 24 then return 0, 0, 0, false end
  local number, till, claim = struct.unpack('>I8I8I8', held)
  return number, till, claim, true
end
local function set_outage(name, number, till, claim)
  redis.call('HSET', KEYS[2], name, struct.pack('>I8I8I8', number, till, claim))
end
