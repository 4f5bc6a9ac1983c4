-- The shard's state for one namespace, one string:
--
--   tcs1 EPOCH SEQUENCE VERIFIED RUN
--
-- EPOCH      which data this is: the server's clock in us when it was begun
-- SEQUENCE   of the last write; it starts at EPOCH
-- VERIFIED   when RUN was last compared with the server's own run id, us
-- RUN        the server's run id
--
-- A missing state, or one of another run, begins a new epoch: values of the old
-- one are misses from then on. Every script begins with this text. KEYS[1] is
-- the state, ARGV[1] the age in us at which VERIFIED must be renewed.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local epoch, sequence, verified, run, changed

local function integer(n) return string.format('%.0f', n) end

local function check()
  local info = redis.pcall('INFO', 'server')
  local id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or '-'
  if run ~= id then
    epoch = math.max(now, (epoch or 0) + 1)
    sequence, run = math.max(epoch, sequence or 0), id
  end
  verified, changed = now, true
end

local held = redis.pcall('GET', KEYS[1])
if type(held) == 'string' then
  local e, s, v, r = string.match(held, '^tcs1 (%d+) (%d+) (%d+) (%S+)$')
  epoch, sequence, verified, run = tonumber(e), tonumber(s), tonumber(v), r
elseif type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
  return held
end
if not epoch or now - verified >= tonumber(ARGV[1]) or verified > now then check() end

local function save()
  redis.call('SET', KEYS[1], table.concat({'tcs1', integer(epoch), integer(sequence), integer(verified), run}, ' '))
end

-- An envelope's head: 3 bytes "tc\1", then epoch, sequence, expiry (ms) and
-- outage, 8 bytes each, big-endian. Its body follows.
local function head(expiry, outage) return 'tc\1' .. struct.pack('>I8I8I8I8', epoch, sequence, expiry, outage) end
local HEAD = 35

-- parse returns the flags of the value at key if it is of this epoch.
local function flags(value)
  if type(value) ~= 'string' or #value < HEAD + 2 or string.sub(value, 1, 3) ~= 'tc\1' then return nil end
  if struct.unpack('>I8', value, 4) ~= epoch then return nil end
  return string.byte(value, HEAD + 1)
end
local MARKER = 2
