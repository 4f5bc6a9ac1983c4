package replsettest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

var sliceRules = []Rule{
	{
		"RS-025", "slices-unchanged",
		"the slices that a caller passes are not changed",
		func(p *probe) error {
			var keys []string
			var cmds [][]string
			for i := range 20 {
				key := p.key(fmt.Sprint("unchanged", 20-i))
				keys = append(keys, key)
				cmds = append(cmds, []string{"sAdd", key, "z", "a", "z"})
			}
			// Room behind the slices shows an append that writes into it.
			keys = append(keys, "room")[:len(keys)]
			for i, cmd := range cmds {
				cmds[i] = append(cmd, "room")[:len(cmd)]
			}
			wantKeys, wantCmds := slices.Clone(keys), make([][]string, len(cmds))
			for i, cmd := range cmds {
				wantCmds[i] = slices.Clone(cmd)
			}
			unchanged := func(method string) error {
				if !slices.Equal(keys, wantKeys) || keys[:len(keys)+1][len(keys)] != "room" {
					return fmt.Errorf("%s changed the keys", method)
				}
				for i, cmd := range cmds {
					if !slices.Equal(cmd, wantCmds[i]) || cmd[:len(cmd)+1][len(cmd)] != "room" {
						return fmt.Errorf("%s changed %q into %q", method, wantCmds[i], cmd[:len(cmd)+1])
					}
				}
				return nil
			}
			if _, err := p.Do(context.Background(), keys[0], cmds[0]); err != nil {
				return err
			}
			if err := unchanged("Do"); err != nil {
				return err
			}
			p.Pipeline(context.Background(), keys, cmds)
			if err := unchanged("Pipeline"); err != nil {
				return err
			}
			if _, err := p.Tx(context.Background(), keys[1], cmds[1:2]); err != nil {
				return err
			}
			return unchanged("Tx")
		},
	},
	{
		"RS-026", "slices-not-kept",
		"the slices that a caller passes are not kept after the method has returned: he uses them again for something else",
		func(p *probe) error {
			key := p.key("kept")
			keys, set, get := []string{key}, []string{"SET", key, ""}, []string{"GET", key}
			cmds := [][]string{set}
			for i := range 30 {
				value := fmt.Sprint("value", i)
				set[0], set[1], set[2] = "SET", key, value
				keys[0], cmds[0] = key, set
				var err error
				switch i % 3 {
				case 0:
					_, err = p.Do(context.Background(), key, set)
				case 1:
					_, err = only(p.Pipeline(context.Background(), keys, cmds))
				case 2:
					_, err = p.Tx(context.Background(), key, cmds)
				}
				if err != nil {
					return err
				}
				set[0], set[1], set[2] = "SET", key, "written after the return"
				keys[0], cmds[0] = "", get
				v, err := p.Do(context.Background(), key, get)
				if err != nil {
					return err
				}
				if err := same(v, value); err != nil {
					return fmt.Errorf("%s, then the slice changed: %w", ways[i%3].name, err)
				}
			}
			return nil
		},
	},
	{
		"RS-027", "slices-not-kept-after-cancel",
		"the slices are not kept either when a method returns because its context ended (the race detector tells)",
		func(p *probe) error {
			for i := range 30 {
				key := p.key(fmt.Sprint("cancelled", i))
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*20*time.Microsecond)
				keys, cmd := []string{key}, []string{"SET", key, "v"}
				cmds := [][]string{cmd}
				var err error
				switch i % 3 {
				case 0:
					_, err = p.Do(ctx, key, cmd)
				case 1:
					_, err = only(p.Pipeline(ctx, keys, cmds))
				case 2:
					_, err = p.Tx(ctx, key, cmds)
				}
				keys[0], cmds[0] = "", nil
				cmd[2] = "written after the return"
				cancel()
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					return err
				}
				v, err := p.Do(context.Background(), key, []string{"GET", key})
				if err != nil {
					return err
				}
				if v != nil && v != "v" {
					return fmt.Errorf("the value is %s, which was put into the slice after the return", show(v))
				}
			}
			return nil
		},
	},
}
