-- Sets and deletes values, gives the write the next sequence, and tells the
-- subscribers. In order of arrival; nothing after its deadline.
--
-- KEYS  1 state, then the values' keys
-- ARGV  1 age of VERIFIED
--       2 deadline, us by this server's clock
--       3 channel
--       then, for each value: its life in ms, 0 to delete it, and its body
--
-- Returns {epoch, sequence, now in us}, and then, for each key of which there are
-- copies, its number from 0 and until when they may be read, us; {0, 0, now} where it
-- came too late, and did nothing. The notice is the epoch and the sequence, 8 bytes each,
-- and each key as "LENGTH:KEY".

if now > tonumber(ARGV[2]) then return {0, 0, now} end
sequence = sequence + 1
local numbers = struct.pack('>I8I8', epoch, sequence)
local notice, reply, any = numbers, {epoch, sequence, now}, hot ~= NONE
local ms = math.floor(now / 1000)
for i = 2, #KEYS do
  local key, life = KEYS[i], tonumber(ARGV[2 * i])
  if life > 0 then
    -- The head of an envelope, see envelope.lua.
    local value = 'tc\1' .. numbers .. struct.pack('>I8I8', ms + life, outage) .. ARGV[2 * i + 1]
    redis.call('SET', key, value, 'PX', ARGV[2 * i]) -- PXAT would have the number made a string
  else
    redis.call('UNLINK', key)
  end
  if leave then leave(key) end
  notice = notice .. #key .. ':' .. key
  local ends = any and marked(key)
  if ends then reply[#reply + 1], reply[#reply + 2] = i - 2, ends end
end
save()
redis.call('PUBLISH', ARGV[3], notice)
return reply
