-- The shard's state for one namespace, one string:
--
--   tcs1 EPOCH SEQUENCE VERIFIED RUN
--
-- EPOCH      which data this is: the server's clock in us when it was begun
-- SEQUENCE   of the last write; it starts at EPOCH
-- VERIFIED   when RUN was last compared with the server's own run id, us
-- RUN        the server's run id
--
-- Numbers have 16 digits, so that they are found without a pattern, which takes
-- longer than a SET. A missing state, or one of another run, begins a new epoch:
-- values of the old one are misses from then on. Every script begins with this
-- text. KEYS[1] is the state, ARGV[1] the age in us at which VERIFIED must be
-- renewed.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local epoch, sequence, verified

local state = redis.pcall('GET', KEYS[1])
if type(state) == 'string' then
  if string.sub(state, 1, 5) == 'tcs1 ' then
    epoch, sequence, verified = tonumber(string.sub(state, 6, 21)), tonumber(string.sub(state, 23, 38)), tonumber(string.sub(state, 40, 55))
  end
elseif state and not string.find(state.err, 'WRONGTYPE', 1, true) then
  return state
end

local changed = not (epoch and sequence and verified) or now - verified >= tonumber(ARGV[1]) or verified > now
if changed then
  local info = redis.pcall('INFO', 'server')
  local id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or '-'
  if not (epoch and sequence) or string.sub(state, 57) ~= id then
    epoch = math.max(now, (epoch or 0) + 1)
    sequence = math.max(epoch, sequence or 0)
  end
  state = string.format('tcs1 %016d %016d %016d %s', epoch, sequence, now, id)
end

local function save() redis.call('SET', KEYS[1], state) end
