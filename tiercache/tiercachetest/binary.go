package tiercachetest

import (
	"bytes"
	"fmt"
	"strings"
)

var binaryRules = []Rule{
	{
		"TS-008", "binary-safe",
		"keys and values hold any bytes: none, every byte value, line ends, NUL, broken UTF-8",
		eachWay(func(p *probe, w way) error {
			for i, value := range awkward() {
				key := p.key(fmt.Sprint(w.name, i, value)) // the key holds the bytes too
				err := p.steps(w,
					step{[]string{"SET", key, value}, "OK"},
					step{[]string{"GET", key}, value},
					step{[]string{"MGET", key, key}, []any{value, value}},
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
		"TS-009", "large-value",
		"a value of 10 MB, and a command of 10000 words, pass whole",
		eachWay(func(p *probe, w way) error {
			key := p.key("large" + w.name)
			large := strings.Repeat("0123456789abcdef", 10<<20/16)
			if err := p.steps(w,
				step{[]string{"SET", key, large}, "OK"},
				step{[]string{"GET", key}, large},
				step{[]string{"SET", key, "v"}, "OK"},
			); err != nil {
				return err
			}
			cmd, want := []string{"MGET"}, []any{}
			for range 10000 {
				cmd, want = append(cmd, key), append(want, "v")
			}
			return p.steps(w, step{cmd, want})
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
