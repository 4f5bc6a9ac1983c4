package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

var errorRules = []Rule{
	{
		"TS-005", "server-text-first",
		"a server's error is an error, not a reply, and begins with the server's own text (ERR ...)",
		eachWay(func(p *probe, w way) error {
			key := p.key("text" + w.name)
			if _, err := p.do("SET", key, "v"); err != nil {
				return err
			}
			for _, cmd := range [][]string{{"INCR", key}, {"EVALSHA", strings.Repeat("0", 40), "0"}} {
				v, err := w.run(p, cmd...)
				if err == nil {
					return fmt.Errorf("%q: got %s and no error", cmd, show(v))
				}
				if want := map[string]string{"INCR": "ERR", "EVALSHA": "NOSCRIPT"}[cmd[0]]; code(err) != want {
					return fmt.Errorf("%q: the error is %q, want one that begins with %s", cmd, err, want)
				}
			}
			return nil
		}),
	},
	{
		"TS-006", "refused-commands",
		"a command that the server refuses outright is an error with the server's own text too",
		eachWay(func(p *probe, w way) error {
			for _, cmd := range [][]string{{"NOSUCHCOMMAND", p.key("refused")}, {"GET"}} {
				v, err := w.run(p, cmd...)
				if err == nil {
					return fmt.Errorf("%q: got %s and no error", cmd, show(v))
				}
				if c := code(err); c != "ERR" && c != "EXECABORT" {
					return fmt.Errorf("%q: the error is %q, want one that begins with ERR", cmd, err)
				}
			}
			return nil
		}),
	},
	{
		"TS-007", "other-errors-look-different",
		"an error that no server said never begins with an upper-case word and a space",
		eachWay(func(p *probe, w way) error {
			ctx, cancel := context.WithCancel(p.ctx)
			cancel()
			_, err := w.call(ctx, p.Shard, []string{"GET", p.key("ended" + w.name)})
			switch {
			case err == nil:
				return errors.New("an ended context gave no error")
			case code(err) != "":
				return fmt.Errorf("the error %q reads like a server's", err)
			case strings.TrimSpace(err.Error()) == "":
				return errors.New("the error says nothing")
			}
			return nil
		}),
	},
}
