-- Sets and deletes values, gives the write the next sequence, and tells the
-- subscribers. In order of arrival; nothing after its deadline.
--
-- KEYS  1 state, then the values' keys
-- ARGV  1 age of verification, us
--       2 deadline, us by this server's clock
--       3 channel
--       4 outage, 0 for none
--       then, for each value: its life in ms, 0 to delete it, and its body
--
-- Returns {epoch, sequence, now in us}; epoch is 0 where it came too late, and
-- did nothing. The notice is "EPOCH SEQUENCE " and each key as "LENGTH:KEY".

if now > tonumber(ARGV[2]) then return {0, 0, now} end
sequence = sequence + 1
local notice = {integer(epoch), ' ', integer(sequence), ' '}
for i = 2, #KEYS do
  local key, life, body = KEYS[i], tonumber(ARGV[2 * i + 1]), ARGV[2 * i + 2]
  if life > 0 then
    local expiry = math.floor(now / 1000) + life
    redis.call('SET', key, head(expiry, ARGV[4]) .. body, 'PXAT', integer(expiry))
  else
    redis.call('DEL', key)
  end
  notice[#notice + 1] = #key .. ':' .. key
end
save()
redis.call('PUBLISH', ARGV[3], table.concat(notice))
return {epoch, sequence, now}
