-- The shard's state for one namespace, one string:
--
--   "tcs\2"   4 bytes
--   EPOCH     8 bytes: which data this is; the server's clock in us when it was begun
--   SEQUENCE  8 bytes: of the last write; it starts at EPOCH
--   VERIFIED  8 bytes: when a process last said that it watches the shard, us
--   HOT       16 bytes: a bit for each key of which there are copies, see hot.lua
--   LIST      8 bytes: the number of the list of shards, 0 for none, see list.lua
--   NOTES     8 bytes: how many notes lie here, for all shards
--   SINCE     8 bytes: from when on none was lost, us
--   RUN       the server's run id
--
-- Numbers are big-endian: packed ones are found and put together in a third of the
-- time of decimal ones. A missing state, or one of another run, begins a new epoch:
-- values of the old one are misses from then on. Every script begins with this
-- text, and ends with {0, 3, now} where the last ARGV, the number of the caller's list,
-- is lower. KEYS[1] is the state, ARGV[1] the age of VERIFIED in us from which on the run
-- id must be compared first.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local theirs = tonumber(table.remove(ARGV))
local epoch, sequence, verified, hot, list, tail -- of which the last is NOTES, SINCE and RUN as they are
local NONE = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'

local state = redis.pcall('GET', KEYS[1])
if type(state) == 'string' then
  if #state > 68 and string.sub(state, 1, 4) == 'tcs\2' then
    epoch, sequence, verified, hot, list = struct.unpack('>I8I8I8c16I8', state, 5)
    tail = string.sub(state, 53)
    if epoch >= 2 ^ 53 or sequence >= 2 ^ 53 then epoch = nil end -- no number of ours
  end
elseif state and not string.find(state.err, 'WRONGTYPE', 1, true) then
  return state
end

local changed = false
if not epoch or now - verified >= tonumber(ARGV[1]) or verified > now then
  local info = redis.pcall('INFO', 'server')
  local id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or '-'
  if not epoch or string.sub(tail, 17) ~= id then
    sequence = epoch and sequence or 0
    epoch = math.max(now, (epoch or 0) + 1)
    sequence = math.max(epoch, sequence)
    hot, list, verified, tail, changed = NONE, list or 0, now, struct.pack('>I8I8', 0, now) .. id, true
  end
end

local function save()
  redis.call('SET', KEYS[1], 'tcs\2' .. struct.pack('>I8I8I8c16I8', epoch, sequence, verified, hot, list) .. tail)
end

if theirs < list then
  if changed then save() end
  return {0, 3, now}
end
