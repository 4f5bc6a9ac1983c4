package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

var sliceRules = []Rule{
	{
		"TS-019", "slices-unchanged",
		"the slices that a caller passes are not changed",
		func(p *probe) error {
			var cmds [][]string
			for i := range 20 {
				cmds = append(cmds, []string{"mGet", p.key(fmt.Sprint("unchanged", 20-i)), "z", "a", "z"})
			}
			// Room behind the slices shows an append that writes into it.
			cmds = append(cmds, []string{"room"})[:len(cmds)]
			for i, cmd := range cmds {
				cmds[i] = append(cmd, "room")[:len(cmd)]
			}
			want := make([][]string, len(cmds))
			for i, cmd := range cmds {
				want[i] = slices.Clone(cmd)
			}
			unchanged := func(method string) error {
				if room := cmds[:len(cmds)+1][len(cmds)]; !slices.Equal(room, []string{"room"}) {
					return fmt.Errorf("%s wrote behind the commands", method)
				}
				for i, cmd := range cmds {
					if !slices.Equal(cmd, want[i]) || cmd[:len(cmd)+1][len(cmd)] != "room" {
						return fmt.Errorf("%s changed %q into %q", method, want[i], cmd[:len(cmd)+1])
					}
				}
				return nil
			}
			if _, err := p.do(cmds[0]...); err != nil {
				return err
			}
			if err := unchanged("Do"); err != nil {
				return err
			}
			p.pipeline(cmds)
			if err := unchanged("Pipeline"); err != nil {
				return err
			}
			if _, err := p.tx(cmds); err != nil {
				return err
			}
			return unchanged("Tx")
		},
	},
	{
		"TS-020", "slices-not-kept",
		"the slices that a caller passes are not kept after the method has returned, by its deadline neither: he uses them again for something else (the race detector tells)",
		func(p *probe) error {
			for i := range 60 {
				key := p.key(fmt.Sprint("kept", i))
				ctx, cancel := context.WithTimeout(p.ctx, callTime)
				if i >= 30 {
					cancel()
					ctx, cancel = context.WithTimeout(p.ctx, time.Duration(i-30)*20*time.Microsecond)
				}
				cmd := []string{"SET", key, "v"}
				cmds := [][]string{cmd}
				var err error
				switch i % 3 {
				case 0:
					_, err = p.Do(ctx, cmd)
				case 1:
					_, err = only(p.Pipeline(ctx, cmds))
				case 2:
					_, err = p.Tx(ctx, cmds)
				}
				cmds[0] = nil
				cmd[0], cmd[1], cmd[2] = "SET", key, "written after the return"
				cancel()
				if err != nil && (i < 30 || !errors.Is(err, context.DeadlineExceeded)) {
					return fmt.Errorf("%s: %w", ways[i%3].name, err)
				}
				v, err := p.do("GET", key)
				if err != nil {
					return err
				}
				if v != "v" && (i < 30 || v != nil) {
					return fmt.Errorf("%s: the value is %s, which was put into the slice after the return", ways[i%3].name, show(v))
				}
			}
			return nil
		},
	},
}
