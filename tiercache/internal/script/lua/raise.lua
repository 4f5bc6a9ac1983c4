-- Begins a new epoch, if the present one is still the caller's: all values are misses
-- from then on, and subscribers hear so.
--
-- ARGV  1 age of VERIFIED
--       2 epoch
--       3 channel
--
-- Returns {epoch, sequence, now in us}.

if epoch == tonumber(ARGV[2]) then
  epoch = math.max(now, epoch + 1)
  sequence = math.max(epoch, sequence) + 1
  verified, changed = now, true
  redis.call('PUBLISH', ARGV[3], struct.pack('>I8I8', epoch, sequence))
end
if changed then save() end
return {epoch, sequence, now}
