-- The keys of the values' tags are the last of KEYS. ARGV ends with the life in ms
-- that they need, and their number. What follows finds KEYS and ARGV without these.
--
-- A tag's key holds the sequence at which it was made, 8 bytes: values from before
-- that are misses, and all values of the tag while there is no key. To invalidate a tag
-- is to delete its key, and eviction does no more.
local tags = {}
for i = 1, tonumber(table.remove(ARGV)) do tags[i] = table.remove(KEYS) end
local tags_life = table.remove(ARGV)

-- keep_tags sees to it that the keys outlive a value of the given sequence.
local function keep_tags(at)
  for _, tag in ipairs(tags) do
    if redis.call('PEXPIRE', tag, tags_life, 'GT') == 0 then
      redis.call('SET', tag, struct.pack('>I8', at), 'PX', tags_life, 'NX')
    end
  end
end
