package replsettest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
)

var binaryRules = []Rule{
	{
		"RS-009", "binary-safe",
		"keys, values and members hold any bytes: none, every byte value, line ends, NUL, broken UTF-8",
		eachWay(func(p *probe, w way) error {
			for i, value := range awkward() {
				key := p.key(fmt.Sprint(w.name, i, value)) // the key holds the bytes too
				set := p.key(fmt.Sprint(w.name, "set", i))
				err := p.steps(w,
					step{[]string{"SET", key, value}, "OK"},
					step{[]string{"GET", key}, value},
					step{[]string{"SADD", set, value}, int64(1)},
					step{[]string{"SMEMBERS", set}, []any{value}},
					step{[]string{"SMISMEMBER", set, value, value + "."}, []any{int64(1), int64(0)}},
					step{[]string{"SREM", set, value}, int64(1)},
					step{[]string{"DEL", key}, int64(1)},
				)
				if err != nil {
					return err
				}
			}
			return nil
		}),
	},
	{
		"RS-010", "large-value",
		"a value of 1 MB, and a command of 10000 words, pass whole",
		eachWay(func(p *probe, w way) error {
			key, set := p.key("large"+w.name), p.key("many"+w.name)
			large := strings.Repeat("0123456789abcdef", 1<<16)
			members := make([]string, 10000)
			for i := range members {
				members[i] = fmt.Sprintf("member-%05d", i)
			}
			if err := p.steps(w,
				step{[]string{"SET", key, large}, "OK"},
				step{[]string{"GET", key}, large},
				step{append([]string{"SADD", set}, members...), int64(len(members))},
			); err != nil {
				return err
			}
			v, err := w.run(context.Background(), p.Backend, set, "SMEMBERS", set)
			if err != nil {
				return err
			}
			list, ok := v.([]any)
			if !ok {
				return fmt.Errorf("SMEMBERS: got %s, want a list", show(v))
			}
			got := make([]string, len(list))
			for i, e := range list {
				got[i], _ = e.(string)
			}
			slices.Sort(got)
			if !slices.Equal(got, members) {
				return fmt.Errorf("SMEMBERS after SADD of %d members: got %d, or others", len(members), len(got))
			}
			return nil
		}),
	},
}

// awkward returns the byte strings that clients stumble over.
func awkward() []string {
	var all bytes.Buffer
	for b := range 256 {
		all.WriteByte(byte(b))
	}
	return []string{"", " ", "\r\n", "\x00", "$3\r\nabc\r\n", "*1\r\n", "-ERR x", "\xff\xfe", "{}", "}{", "{a}b{c}", all.String()}
}
