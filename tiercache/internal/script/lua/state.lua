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
local epoch, sequence, verified, run

local held = redis.pcall('GET', KEYS[1])
if type(held) == 'string' then
  if string.sub(held, 1, 5) == 'tcs1 ' then
    epoch, sequence, verified, run =
      tonumber(string.sub(held, 6, 21)), tonumber(string.sub(held, 23, 38)), tonumber(string.sub(held, 40, 55)), string.sub(held, 57)
  end
elseif held and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end

local changed = not (epoch and sequence and verified) or now - verified >= tonumber(ARGV[1]) or verified > now
if changed then
  local info = redis.pcall('INFO', 'server')
  local id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or '-'
  if run ~= id or not (epoch and sequence) then
    epoch = math.max(now, (epoch or 0) + 1)
    sequence, run = math.max(epoch, sequence or 0), id
  end
  verified = now
end

local function save()
  redis.call('SET', KEYS[1], string.format('tcs1 %016.0f %016.0f %016.0f %s', epoch, sequence, verified, run))
end
