package replsettest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkit/shardkit/replset"
)

var readerRules = []Rule{
	{
		"RS-029", "replica-reader",
		"ReadTx, where a backend has it, answers as Tx does, from a server replica that may be a little late: one element per command, errors in their own, nil for a missing key",
		func(p *probe) error {
			reader, ok := p.Backend.(replset.ReplicaReader)
			if !ok {
				return &NotApplicable{"this backend does not read from server replicas (replset.ReplicaReader)"}
			}
			for i := range 12 { // over all nodes
				key := p.key(fmt.Sprint("reader", i))
				if err := p.known("SET", key, "v"); err != nil {
					return err
				}
				cmds := [][]string{{"GET", key}, {"SCARD", key}, {"GET", p.beside(key)}}
				if err := settled(reader, key, cmds); err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		"RS-030", "replica-reader-context",
		"ReadTx, with a context that has ended, returns an error for which errors.Is(err, ctx.Err()) holds",
		func(p *probe) error {
			reader, ok := p.Backend.(replset.ReplicaReader)
			if !ok {
				return &NotApplicable{"this backend does not read from server replicas (replset.ReplicaReader)"}
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			key := p.key("reader")
			if list, err := reader.ReadTx(ctx, key, [][]string{{"GET", key}}); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("got %s, %v", show(list), err)
			}
			return nil
		},
	},
}

// settled waits until a server replica has what was written, and compares.
func settled(reader replset.ReplicaReader, key string, cmds [][]string) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); ; <-tick.C {
		asked := time.Now() // a stall after it counts for nothing
		list, err := reader.ReadTx(context.Background(), key, cmds)
		switch {
		case err != nil:
			return err
		case len(list) != len(cmds):
			return fmt.Errorf("%d elements for %d commands", len(list), len(cmds))
		case list[0] == nil && asked.Before(deadline):
			continue
		}
		if failed, ok := list[1].(error); !ok || code(failed) != "WRONGTYPE" {
			return fmt.Errorf("element 1, of SCARD on a string: got %s, want an error that begins with WRONGTYPE", show(list[1]))
		}
		return errors.Join(same(list[0], "v"), same(list[2], nil))
	}
}
