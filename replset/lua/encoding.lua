-- Shared by the scripts that copy a set: how is that done best?
--
-- restores reports whether RESTORE of a DUMP is faster than SADD. It is, except
-- for sets that Redis 7.2 and later keep as small hash tables. The payload tells:
-- its first byte is the encoding (11 integers, 20 listpack, 2 hash table); the
-- two bytes before the checksum are the format's version, 10 on Redis 7.0.
local function restores(payload, members)
  return type(payload) == 'string' and
    not (string.byte(payload, 1) == 2 and string.byte(payload, -10) > 10 and members <= 512)
end

