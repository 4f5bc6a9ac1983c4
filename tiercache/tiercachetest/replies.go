package tiercachetest

var replyRules = []Rule{
	{
		"TS-001", "reply-shapes",
		"a reply is int64, string, nil or []any, and elements of a list likewise; +OK is the string OK",
		eachWay(func(p *probe, w way) error {
			text, count, absent := p.key("text"+w.name), p.key("count"+w.name), p.key("absent"+w.name)
			return p.steps(w,
				step{[]string{"SET", text, "v"}, "OK"},
				step{[]string{"GET", text}, "v"},
				step{[]string{"SET", text, "12"}, "OK"},
				step{[]string{"GET", text}, "12"}, // a number in a string stays one
				step{[]string{"INCR", count}, int64(1)},
				step{[]string{"MGET", text, absent, count}, []any{"12", nil, "1"}},
				step{[]string{"MGET", absent}, []any{nil}},
				step{[]string{"PTTL", text}, int64(-1)},
				step{[]string{"EXISTS", text, count}, int64(2)},
				step{[]string{"DEL", text, absent}, int64(1)},
			)
		}),
	},
	{
		"TS-002", "missing-key-is-nil",
		"a missing key is a nil reply, not an error and not an empty string",
		eachWay(func(p *probe, w way) error {
			key := p.key("missing" + w.name)
			return p.steps(w,
				step{[]string{"GET", key}, nil},
				step{[]string{"SET", key, ""}, "OK"},
				step{[]string{"GET", key}, ""}, // an empty string is not a missing key
				step{[]string{"SET", key, "x", "NX"}, nil},
				step{[]string{"DEL", key}, int64(1)},
				step{[]string{"GET", key}, nil},
			)
		}),
	},
	{
		"TS-003", "resp2-shapes",
		"replies have the shape of RESP2 whatever the protocol: a map is a flat list, a double is a string, members and scores alternate",
		eachWay(func(p *probe, w way) error {
			hash, scores := p.key("hash"+w.name), p.key("scores"+w.name)
			if err := p.known("HSET", hash, "f", "v"); err != nil {
				return err
			}
			return p.steps(w,
				step{[]string{"HGETALL", hash}, []any{"f", "v"}},
				step{[]string{"ZADD", scores, "1.5", "m"}, int64(1)},
				step{[]string{"ZSCORE", scores, "m"}, "1.5"},
				step{[]string{"ZADD", scores, "1700000000123", "n"}, int64(1)},
				step{[]string{"ZSCORE", scores, "n"}, "1700000000123"},
				step{[]string{"ZRANGE", scores, "0", "1", "WITHSCORES"}, []any{"m", "1.5", "n", "1700000000123"}},
			)
		}),
	},
	{
		"TS-004", "script-replies",
		"a script's reply keeps its structure: lists in lists, nil among elements, integers, its errors",
		eachWay(func(p *probe, w way) error {
			if err := p.known("EVAL", "return 1", "0"); err != nil {
				return err
			}
			return p.steps(w, step{
				[]string{"EVAL", nestedScript, "0"},
				[]any{int64(1), "a", nil, []any{int64(-2), "", nil, []any{}}, int64(1 << 53)},
			})
		}),
	},
}

const nestedScript = "return {1, 'a', false, {-2, '', false, {}}, 9007199254740992}"
