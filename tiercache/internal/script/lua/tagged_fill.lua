-- A load that began before one of its tags was made anew stores nothing. Its marker
-- goes, so that the next load has another.
--
-- ARGV ends, before what is the tags', with a sequence up to which the caller has heard
-- that no tag of the values was invalidated since the loads began, 0 if it has not: a tag
-- that was made up to there is none that was invalidated. It is -1 where the caller is going to
-- find out, by the reply's sequence: then markers stay for another attempt, and missing keys
-- are made for it.
local heard, made = tonumber(table.remove(ARGV)), 0
for _, tag in ipairs(tags) do
  local at = redis.pcall('GET', tag)
  made = math.max(made, type(at) == 'string' and #at == 8 and struct.unpack('>I8', at) or math.huge)
end
for i = 2, #KEYS do
  local held = redis.pcall('GETRANGE', KEYS[i], 0, HEAD + 2 + 16)
  local current, marker = marks(held)
  if current and math.max(struct.unpack('>I8', held, 12), heard) < made then
    if heard >= 0 and marker and string.sub(held, HEAD + 3) == ARGV[3 * i - 4] then redis.call('UNLINK', KEYS[i]) end
    ARGV[3 * i - 4] = ''
  end
end
keep_tags(sequence)
