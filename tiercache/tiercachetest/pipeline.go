package tiercachetest

import (
	"context"
	"fmt"
)

var pipelineRules = []Rule{
	{
		"TS-010", "pipeline-in-order",
		"the commands of a Pipeline run in order, and it returns one element per command, in that order",
		func(p *probe) error {
			for _, n := range []int{1, 2, 5000} {
				key := p.key(fmt.Sprint("order", n))
				cmds := make([][]string, n)
				for i := range cmds {
					cmds[i] = []string{"INCR", key}
				}
				list := p.pipeline(cmds)
				if len(list) != n {
					return fmt.Errorf("%d elements for %d commands", len(list), n)
				}
				for i, v := range list {
					if err := same(v, int64(i+1)); err != nil {
						return fmt.Errorf("element %d of %d: %w", i, n, err)
					}
				}
			}
			return nil
		},
	},
	{
		"TS-011", "pipeline-isolates",
		"in Pipeline a command that fails is an error in its own element, and leaves every other reply as it is",
		func(p *probe) error {
			key, absent := p.key("isolate"), p.key("absent")
			if _, err := p.do("SET", key, "v"); err != nil {
				return err
			}
			var cmds [][]string
			for range 60 {
				cmds = append(cmds, []string{"GET", key}, []string{"INCR", key}, []string{"GET", absent}, []string{"NOSUCHCOMMAND"})
			}
			list := p.pipeline(cmds)
			if len(list) != len(cmds) {
				return fmt.Errorf("%d elements for %d commands", len(list), len(cmds))
			}
			for i, v := range list {
				var err error
				switch i % 4 {
				case 0:
					err = same(v, "v")
				case 2:
					err = same(v, nil)
				default:
					if failed, ok := v.(error); !ok || code(failed) != "ERR" {
						err = fmt.Errorf("got %s, want an error that begins with ERR", show(v))
					}
				}
				if err != nil {
					return fmt.Errorf("element %d, of %q: %w", i, cmds[i], err)
				}
			}
			return nil
		},
	},
	{
		"TS-012", "pipeline-of-none",
		"Pipeline of no command returns no element",
		func(p *probe) error {
			if list := p.pipeline(nil); len(list) != 0 {
				return fmt.Errorf("got %s", show(list))
			}
			return nil
		},
	},
}

func (p *probe) pipeline(cmds [][]string) []any {
	ctx, cancel := context.WithTimeout(p.ctx, callTime)
	defer cancel()
	return p.Pipeline(ctx, cmds)
}
