-- Compares the server's run id with the state's, and marks it as verified.
--
-- ARGV  1 0: now, however lately that was done
--
-- Returns {epoch, sequence, now in us}.

save()
return {epoch, sequence, now}
