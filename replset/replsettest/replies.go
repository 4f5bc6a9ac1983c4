package replsettest

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

var replyRules = []Rule{
	{
		"RS-001", "reply-shapes",
		"a reply is int64, string, nil or []any, and elements of a list likewise; +OK is the string OK",
		eachWay(func(p *probe, w way) error {
			text, set := p.key("text"+w.name), p.key("set"+w.name)
			return p.steps(w,
				step{[]string{"SET", text, "v"}, "OK"},
				step{[]string{"GET", text}, "v"},
				step{[]string{"SET", text, "12"}, "OK"},
				step{[]string{"GET", text}, "12"}, // a number in a string stays one
				step{[]string{"SADD", set, "a"}, int64(1)},
				step{[]string{"SADD", set, "a", "b"}, int64(1)},
				step{[]string{"SCARD", set}, int64(2)},
				step{[]string{"SREM", set, "b"}, int64(1)},
				step{[]string{"SMEMBERS", set}, []any{"a"}},
				step{[]string{"SMISMEMBER", set, "a", "b"}, []any{int64(1), int64(0)}},
				step{[]string{"SDIFF", set, p.beside(set)}, []any{"a"}},
				step{[]string{"EXISTS", set}, int64(1)},
				step{[]string{"DEL", set}, int64(1)},
				step{[]string{"SMEMBERS", set}, []any{}},
			)
		}),
	},
	{
		"RS-002", "missing-key-is-nil",
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
		"RS-003", "resp2-shapes",
		"replies have the shape of RESP2 whatever the protocol: a map is a flat list, a double is a string, a set is a list, members and scores alternate",
		eachWay(func(p *probe, w way) error {
			hash, scores, set := p.key("hash"+w.name), p.key("scores"+w.name), p.key("members"+w.name)
			if err := p.known("HSET", hash, "f", "v"); err != nil {
				return err
			}
			if err := p.steps(w,
				step{[]string{"HGETALL", hash}, []any{"f", "v"}},
				step{[]string{"ZADD", scores, "1.5", "m"}, int64(1)},
				step{[]string{"ZSCORE", scores, "m"}, "1.5"},
				step{[]string{"ZADD", scores, "inf", "top"}, int64(1)},
				step{[]string{"ZSCORE", scores, "top"}, "inf"},
				step{[]string{"ZADD", scores, "-inf", "bottom"}, int64(1)},
				step{[]string{"ZSCORE", scores, "bottom"}, "-inf"},
				step{[]string{"ZADD", scores, "1700000000123", "big"}, int64(1)},
				step{[]string{"ZSCORE", scores, "big"}, "1700000000123"},
				step{[]string{"ZRANGE", scores, "1", "2", "WITHSCORES"}, []any{"m", "1.5", "big", "1700000000123"}},
				step{[]string{"SADD", set, "a", "b"}, int64(2)},
			); err != nil {
				return err
			}
			v, err := w.run(context.Background(), p.Backend, set, "SMEMBERS", set)
			if err != nil {
				return err
			}
			list, _ := v.([]any)
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			return same(v, []any{"a", "b"})
		}),
	},
	{
		"RS-004", "nested-replies",
		"elements of a list are int64, string, nil or []any themselves, and a missing one keeps its place",
		eachWay(func(p *probe, w way) error {
			key := p.key("nested" + w.name)
			if err := p.scripts(key); err != nil {
				return err
			}
			got, err := w.run(context.Background(), p.Backend, key, "EVAL", nestedScript, "1", key)
			if err != nil {
				return err
			}
			return same(got, []any{int64(1), "a", nil, []any{int64(-2), "", nil, []any{}}, "OK"})
		}),
	},
}

const nestedScript = "return {1, 'a', false, {-2, '', false, {}}, redis.status_reply('OK')}"

// known runs a command that sets something up, and says that the rule does not
// apply where the server has no such command.
func (p *probe) known(cmd ...string) error {
	_, err := p.Do(context.Background(), cmd[1], cmd)
	return unlessUnknown(cmd[0], err)
}

// scripts says that the rule does not apply where there are none.
func (p *probe) scripts(key string) error {
	_, err := p.Do(context.Background(), key, []string{"EVAL", "return 1", "1", key})
	return unlessUnknown("EVAL", err)
}

func unlessUnknown(command string, err error) error {
	if err == nil {
		return nil
	}
	if strings.HasPrefix(err.Error(), "ERR unknown command") || code(err) == "NOPERM" {
		return &NotApplicable{"the server behind this backend has no " + command}
	}
	return fmt.Errorf("%s: %w", command, err)
}
