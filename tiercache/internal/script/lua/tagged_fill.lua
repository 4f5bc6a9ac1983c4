-- A load that began before one of its tags was made anew stores nothing. Its marker
-- goes, so that the next load has another.
local made = 0
for _, tag in ipairs(tags) do
  local at = redis.pcall('GET', tag)
  made = math.max(made, type(at) == 'string' and #at == 8 and struct.unpack('>I8', at) or math.huge)
end
for i = 2, #KEYS do
  local held = redis.pcall('GETRANGE', KEYS[i], 0, HEAD + 2 + 16)
  local current, marker = marks(held)
  if current and struct.unpack('>I8', held, 12) < made then
    if marker and string.sub(held, HEAD + 3) == ARGV[3 * i - 4] then redis.call('UNLINK', KEYS[i]) end
    ARGV[3 * i - 4] = ''
  end
end
keep_tags(sequence)
