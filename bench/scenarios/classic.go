package scenarios

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/slotmap"
)

// classic writes a replica to each slot as it is done by hand: plain commands in pipelines, one goroutine per master.
//
// It is as fast as that way gets with go-redis. Keys and the members' boxes are made once, outside of what is timed; each
// pipeline goes straight to its master, past the cluster client's routing. It does no more than needed: it keeps no
// order between writers, looks at no redirect, and never reads the slot map again.
type classic struct {
	masters []classicMaster
}

// chunk is how many slots one pipeline writes: some 20,000 members, as far as there are slots to it. Tried were 4 to 2048
// slots, with 10 to 2000 members: up to twice or half of this nothing changes, far less waits for round trips, and far more
// for the last byte of a long request.
func chunk(members int) int { return min(max(8, 20_000/max(members, 1)), 1024) }

// stageSuffix is that of the key which is filled before it replaces a replica.
const stageSuffix = ":next"

type classicMaster struct {
	client *redis.Client
	keys   []string
	stages []string // beside each key, in its slot
}

// newClassic maps the slots to the masters that own them now.
func newClassic(ctx context.Context, t *Target, name string) (*classic, error) {
	byAddr := map[string]*classicMaster{}
	for _, slot := range t.slots(name) {
		key := slotmap.KeyForSlot(name, slot)
		node, err := t.Client.MasterForKey(ctx, key)
		if err != nil {
			return nil, err
		}
		m := byAddr[node.Options().Addr]
		if m == nil {
			m = &classicMaster{client: node}
			byAddr[node.Options().Addr] = m
		}
		m.keys = append(m.keys, key)
		m.stages = append(m.stages, key+stageSuffix)
	}
	c := &classic{}
	for _, m := range byAddr {
		c.masters = append(c.masters, *m)
	}
	return c, nil
}

// publish replaces every replica: the members go to a key beside it, which is then renamed over it.
func (c *classic) publish(ctx context.Context, members []any) error {
	return c.each(ctx, chunk(len(members)), func(pipe redis.Pipeliner, key, stage string) {
		pipe.Del(ctx, stage)
		_ = pipe.Process(ctx, setCommand(ctx, "sadd", stage, members))
		pipe.Rename(ctx, stage, key)
	})
}

// apply adds and removes members of every replica.
func (c *classic) apply(ctx context.Context, add, remove []any) error {
	return c.each(ctx, chunk(len(add)+len(remove)), func(pipe redis.Pipeliner, key, _ string) {
		_ = pipe.Process(ctx, setCommand(ctx, "sadd", key, add))
		_ = pipe.Process(ctx, setCommand(ctx, "srem", key, remove))
	})
}

// each runs the commands that write adds, for every slot, so many slots a pipeline.
func (c *classic) each(ctx context.Context, chunk int, write func(pipe redis.Pipeliner, key, stage string)) error {
	errs := make([]error, len(c.masters))
	var wg sync.WaitGroup
	for i, m := range c.masters {
		wg.Go(func() {
			for first := 0; first < len(m.keys) && errs[i] == nil; first += chunk {
				pipe := m.client.Pipeline()
				for slot := first; slot < min(first+chunk, len(m.keys)); slot++ {
					write(pipe, m.keys[slot], m.stages[slot])
				}
				if _, err := pipe.Exec(ctx); err != nil {
					errs[i] = fmt.Errorf("%s: %w", m.client.Options().Addr, err)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func setCommand(ctx context.Context, name, key string, members []any) *redis.IntCmd {
	args := make([]any, 2+len(members))
	args[0], args[1] = name, key
	copy(args[2:], members)
	return redis.NewIntCmd(ctx, args...)
}

func boxed(members []string) []any {
	out := make([]any, len(members))
	for i, m := range members {
		out[i] = m
	}
	return out
}
