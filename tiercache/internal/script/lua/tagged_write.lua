if now <= tonumber(ARGV[2]) then keep_tags(sequence + 1) end
