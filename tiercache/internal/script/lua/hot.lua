-- Keys of which other shards hold copies, each with when the last copy has ended,
-- us by this server's clock, in a sorted set beside the state. HOT has a bit for
-- each, so a write of another key need not look.
local copied = string.sub(KEYS[1], 1, -6) .. 'hot'

-- bit is the place of a key's bit in HOT: a byte of it, and the bit's value there.
-- Some of the key's bytes do: who shares a hot key's bit has to look, that is all.
local function bit(key)
  local n = #key
  local a, b = string.byte(key, -2, -1)
  local c, d = string.byte(key, n / 2, n / 2 + 1)
  local h = n + 7 * a + 13 * b + 29 * c + 43 * d
  return math.floor(h / 8) % 16 + 1, 2 ^ (h % 8)
end

-- marked is until when there may be copies of a key, false if there are none.
local function marked(key)
  local byte, value = bit(key)
  if math.floor(string.byte(hot, byte) / value) % 2 == 0 then return false end
  local ends = tonumber(redis.call('ZSCORE', copied, key) or 0)
  return ends > now and ends
end
