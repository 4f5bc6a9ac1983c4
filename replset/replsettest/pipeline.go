package replsettest

import (
	"context"
	"fmt"
)

var pipelineRules = []Rule{
	{
		"RS-015", "pipeline-in-order",
		"Pipeline returns one element per command, in the order of the commands, however they spread over slots and nodes",
		func(p *probe) error {
			const n = 1000
			keys, sets, gets := make([]string, n), make([][]string, n), make([][]string, n)
			for i := range n {
				keys[i] = p.key(fmt.Sprint("order", i))
				sets[i] = []string{"SET", keys[i], fmt.Sprint("value", i)}
				gets[i] = []string{"GET", keys[i]}
			}
			for i, v := range p.Pipeline(context.Background(), keys, sets) {
				if err := same(v, "OK"); err != nil {
					return fmt.Errorf("element %d, of SET: %w", i, err)
				}
			}
			list := p.Pipeline(context.Background(), keys, gets)
			if len(list) != n {
				return fmt.Errorf("%d elements for %d commands", len(list), n)
			}
			for i, v := range list {
				if err := same(v, fmt.Sprint("value", i)); err != nil {
					return fmt.Errorf("element %d of %d: %w", i, n, err)
				}
			}
			return nil
		},
	},
	{
		"RS-016", "pipeline-isolates",
		"in Pipeline a command that fails is an error in its own element, and leaves every other reply as it is",
		func(p *probe) error {
			const n = 60
			var keys []string
			var cmds [][]string
			for i := range n {
				key := p.key(fmt.Sprint("isolate", i))
				if err := p.known("SET", key, "v"); err != nil {
					return err
				}
				keys = append(keys, key, key, key)
				cmds = append(cmds, []string{"GET", key}, []string{"SADD", key, "x"}, []string{"GET", p.beside(key)})

			}
			list := p.Pipeline(context.Background(), keys, cmds)
			if len(list) != len(cmds) {
				return fmt.Errorf("%d elements for %d commands", len(list), len(cmds))
			}
			for i, v := range list {
				switch i % 3 {
				case 0:
					if err := same(v, "v"); err != nil {
						return fmt.Errorf("element %d, of a good command: %w", i, err)
					}
				case 1:
					if err, failed := v.(error); !failed || code(err) != "WRONGTYPE" {
						return fmt.Errorf("element %d, of SADD on a string: got %s, want an error that begins with WRONGTYPE", i, show(v))
					}
				case 2:
					if err := same(v, nil); err != nil {
						return fmt.Errorf("element %d, of GET on a missing key: %w", i, err)
					}
				}
			}
			return nil
		},
	},
	{
		"RS-017", "pipeline-of-none",
		"Pipeline of no command returns no element",
		func(p *probe) error {
			if list := p.Pipeline(context.Background(), nil, nil); len(list) != 0 {
				return fmt.Errorf("got %s", show(list))
			}
			return nil
		},
	},
}
