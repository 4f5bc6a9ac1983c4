package replsettest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

var txRules = []Rule{
	{
		"RS-018", "tx-in-order",
		"Tx runs its commands in order and returns one element for each",
		func(p *probe) error {
			const n = 100
			key := p.key("order")
			var cmds [][]string
			for i := range n {
				cmds = append(cmds, []string{"SET", key, fmt.Sprint(i)}, []string{"GET", key})
			}
			list, err := p.Tx(context.Background(), key, cmds)
			if err != nil {
				return err
			}
			if len(list) != len(cmds) {
				return fmt.Errorf("%d elements for %d commands", len(list), len(cmds))
			}
			for i, v := range list {
				var want any = "OK"
				if i%2 == 1 {
					want = fmt.Sprint(i / 2)
				}
				if err := same(v, want); err != nil {
					return fmt.Errorf("element %d: %w", i, err)
				}
			}
			return nil
		},
	},
	{
		"RS-019", "tx-element-errors",
		"in Tx a command that fails as it runs (WRONGTYPE) is an error in its own element; the others run, and Tx returns no error",
		func(p *probe) error {
			key := p.key("element")
			list, err := p.Tx(context.Background(), key, [][]string{
				{"SET", key, "v"}, {"SADD", key, "x"}, {"GET", key}, {"GET", p.beside(key)},
			})
			if err != nil {
				return fmt.Errorf("returned the error %w", err)
			}
			if len(list) != 4 {
				return fmt.Errorf("4 commands gave %s", show(list))
			}
			if err, failed := list[1].(error); !failed || code(err) != "WRONGTYPE" {
				return fmt.Errorf("element 1: got %s, want an error that begins with WRONGTYPE", show(list[1]))
			}
			return errors.Join(same(list[0], "OK"), same(list[2], "v"), same(list[3], nil))
		},
	},
	{
		"RS-020", "tx-all-or-none",
		"when the server refuses one command of a Tx outright, Tx returns an error and none runs",
		func(p *probe) error {
			key := p.key("none")
			list, err := p.Tx(context.Background(), key, [][]string{{"SET", key, "v"}, {"NOSUCHCOMMAND", key}})
			if err == nil {
				return fmt.Errorf("got %s and no error", show(list))
			}
			return p.unwritten(key)
		},
	},
	{
		"RS-021", "tx-cross-slot",
		"a Tx whose keys lie in several slots is refused whole: an error, and none of its commands runs",
		func(p *probe) error {
			for n := range 6 { // the two slots may share a node, or not
				a, b := p.apart(n)
				list, err := p.Tx(context.Background(), a, [][]string{{"SET", a, "v"}, {"SET", b, "v"}})
				if err == nil {
					return fmt.Errorf("got %s and no error", show(list))
				}
				if err := errors.Join(p.unwritten(a), p.unwritten(b)); err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		"RS-022", "tx-atomic",
		"no command of another caller runs between the commands of one Tx",
		func(p *probe) error {
			const writers, rounds = 4, 50
			key := p.key("atomic")
			other := p.beside(key)
			var wg sync.WaitGroup
			var torn atomic.Pointer[error]
			fail := func(err error) { torn.CompareAndSwap(nil, &err) }
			for w := range writers {
				wg.Go(func() {
					for i := range rounds {
						v := fmt.Sprint(w, "-", i)
						if _, err := p.Tx(context.Background(), key, [][]string{{"SET", key, v}, {"SET", other, v}}); err != nil {
							fail(err)
						}
					}
				})
				wg.Go(func() {
					for range rounds {
						list, err := p.Tx(context.Background(), key, [][]string{{"GET", key}, {"GET", other}})
						switch {
						case err != nil:
							fail(err)
						case len(list) != 2 || list[0] != list[1]:
							fail(fmt.Errorf("two keys that every Tx writes together read as %s", show(list)))
						}
					}
				})
			}
			wg.Wait()
			if err := torn.Load(); err != nil {
				return *err
			}
			return nil
		},
	},
}

func (p *probe) unwritten(key string) error {
	v, err := p.Do(context.Background(), key, []string{"GET", key})
	if err != nil {
		return err
	}
	if v != nil {
		return fmt.Errorf("a command of the refused Tx ran: %q is now %s", key, show(v))
	}
	return nil
}
