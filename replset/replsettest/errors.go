package replsettest

import (
	"context"
	"fmt"
	"strings"
)

var errorRules = []Rule{
	{
		"RS-005", "server-text-first",
		"a server's error is an error, not a reply, and begins with the server's own text (WRONGTYPE ...)",
		eachWay(func(p *probe, w way) error {
			key := p.key("text" + w.name)
			if err := p.known("SET", key, "v"); err != nil {
				return err
			}
			v, err := w.run(context.Background(), p.Backend, key, "SADD", key, "x")
			if err == nil {
				return fmt.Errorf("SADD on a string: got %s and no error", show(v))
			}
			if code(err) != "WRONGTYPE" {
				return fmt.Errorf("SADD on a string: the error is %q, want one that begins with WRONGTYPE", err)
			}
			return nil
		}),
	},
	{
		"RS-006", "refused-commands",
		"a command that the server refuses outright is an error with the server's own text too",
		eachWay(func(p *probe, w way) error {
			key := p.key("refused" + w.name)
			for _, cmd := range [][]string{{"NOSUCHCOMMAND", key}, {"GET"}} {
				v, err := w.run(context.Background(), p.Backend, key, cmd...)
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
		"RS-007", "cross-slot",
		"a command whose keys lie in several slots is refused with the server's CROSSSLOT; it neither panics nor runs",
		func(p *probe) error {
			a, b := p.apart(0)
			for _, w := range ways[:2] { // Tx has a rule of its own
				v, err := w.run(context.Background(), p.Backend, a, "SINTER", a, b)
				if err == nil {
					return fmt.Errorf("%s: SINTER over two slots: got %s and no error", w.name, show(v))
				}
				if code(err) != "CROSSSLOT" {
					return fmt.Errorf("%s: SINTER over two slots: the error is %q, want one that begins with CROSSSLOT", w.name, err)
				}
			}
			return nil
		},
	},
	{
		"RS-008", "other-errors-look-different",
		"an error that no server said never begins with an upper-case word and a space",
		eachWay(func(p *probe, w way) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			key := p.key("ended" + w.name)
			_, err := w.run(ctx, p.Backend, key, "GET", key)
			if err == nil {
				return fmt.Errorf("an ended context gave no error")
			}
			if c := code(err); c != "" {
				return fmt.Errorf("the error %q reads like a server's %s", err, c)
			}
			if strings.TrimSpace(err.Error()) == "" {
				return fmt.Errorf("the error says nothing")
			}
			return nil
		}),
	},
}
