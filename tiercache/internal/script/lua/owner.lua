-- At the owner of the keys.
local outage, leave = 0, nil
