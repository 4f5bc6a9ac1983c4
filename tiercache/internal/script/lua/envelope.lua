-- An envelope's head: 3 bytes "tc\1", then epoch, sequence, expiry (ms) and
-- outage, 8 bytes each, big-endian. Its body follows.
local HEAD, MARKER = 35, 2
local function head(expiry) return 'tc\1' .. struct.pack('>I8I8I8I8', epoch, sequence, expiry, outage) end

-- marks tells whether the value is of this epoch and outage, and whether it is a marker.
local function marks(value)
  if type(value) ~= 'string' or #value < HEAD + 2 or string.sub(value, 1, 3) ~= 'tc\1' or
      struct.unpack('>I8', value, 4) ~= epoch or struct.unpack('>I8', value, 28) ~= outage then
    return false, false
  end
  return true, math.floor(string.byte(value, HEAD + 1) / MARKER) % 2 == 1
end

-- unwatched tells whether values from before an outage may be here.
local function unwatched() return verified > now or now - verified >= tonumber(ARGV[1]) end
