package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

var txRules = []Rule{
	{
		"TS-013", "tx-in-order",
		"Tx runs its commands in order and returns one element for each",
		func(p *probe) error {
			const n = 100
			key := p.key("order")
			var cmds [][]string
			for i := range n {
				cmds = append(cmds, []string{"SET", key, fmt.Sprint(i)}, []string{"GET", key})
			}
			list, err := p.tx(cmds)
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
		"TS-014", "tx-element-errors",
		"in Tx a command that fails as it runs is an error in its own element; the others run, and Tx returns no error",
		func(p *probe) error {
			key := p.key("element")
			list, err := p.tx([][]string{{"SET", key, "v"}, {"INCR", key}, {"GET", key}, {"GET", p.key("absent")}})
			if err != nil {
				return fmt.Errorf("returned the error %w", err)
			}
			if len(list) != 4 {
				return fmt.Errorf("4 commands gave %s", show(list))
			}
			if err, failed := list[1].(error); !failed || code(err) != "ERR" {
				return fmt.Errorf("element 1: got %s, want an error that begins with ERR", show(list[1]))
			}
			return errors.Join(same(list[0], "OK"), same(list[2], "v"), same(list[3], nil))
		},
	},
	{
		"TS-015", "tx-all-or-none",
		"when the server refuses one command of a Tx outright, Tx returns an error and none runs",
		func(p *probe) error {
			key := p.key("none")
			list, err := p.tx([][]string{{"SET", key, "v"}, {"NOSUCHCOMMAND", key}})
			if err == nil {
				return fmt.Errorf("got %s and no error", show(list))
			}
			v, err := p.do("GET", key)
			if err == nil {
				err = same(v, nil)
			}
			if err != nil {
				return fmt.Errorf("GET of what the refused Tx had set: %w", err)
			}
			return nil
		},
	},
	{
		"TS-016", "tx-atomic",
		"no command of another caller runs between the commands of one Tx",
		func(p *probe) error {
			const writers, rounds = 4, 50
			key, other := p.key("atomic"), p.key("other")
			var writing, reading sync.WaitGroup
			var written atomic.Bool
			failed := make(chan error, 2*writers)
			for w := range writers {
				writing.Go(func() {
					for i := range rounds {
						v := fmt.Sprint(w, "-", i)
						if _, err := p.tx([][]string{{"SET", key, v}, {"SET", other, v}}); err != nil {
							failed <- err
							return
						}
					}
				})
				reading.Go(func() {
					for !written.Load() { // or they may be over before anything is written
						v, err := p.do("MGET", key, other)
						if list, _ := v.([]any); err == nil && (len(list) != 2 || list[0] != list[1]) {
							err = fmt.Errorf("two keys that every Tx writes together read as %s", show(v))
						}
						if err != nil {
							failed <- err
							return
						}
					}
				})
			}
			writing.Wait()
			written.Store(true)
			reading.Wait()
			close(failed)
			return <-failed
		},
	},
}

func (p *probe) tx(cmds [][]string) ([]any, error) {
	ctx, cancel := context.WithTimeout(p.ctx, callTime)
	defer cancel()
	return p.Tx(ctx, cmds)
}
