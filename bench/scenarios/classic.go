package scenarios

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/shardkit/shardkit/slotmap"
)

// classic writes a replica to each slot as it is done without this library: plain commands in pipelines. It does no more
// than needed: it keeps no order between writers, looks at no redirect, and never reads the slot map again.
type classic struct {
	// each runs what add puts into pipelines for every replica, so many replicas a pipeline, and shows see the answers of each,
	// several at a time.
	each func(ctx context.Context, chunk int, add func(redis.Pipeliner, place), see func([]redis.Cmder) error) error
}

// place is where a replica goes.
type place struct {
	key   string
	stage string // beside it, in its slot
}

func placeOf(name string, slot uint16) place {
	key := slotmap.KeyForSlot(name, slot)
	return place{key, key + stageSuffix}
}

// chunk is how many slots one pipeline writes: some 20,000 members, as far as there are slots to it. Tried were 4 to 2048
// slots, with 10 to 2000 members: up to twice or half of this nothing changes, far less waits for round trips, and far more
// for the last byte of a long request.
func chunk(members int) int { return min(max(8, 20_000/max(members, 1)), 1024) }

// stageSuffix is that of the key which is filled before it replaces a replica.
const stageSuffix = ":next"

// newByHand is as fast as that way gets with go-redis: a goroutine per master, whose pipelines go straight to it, past the
// cluster client's routing. Keys and the members' boxes are made once, outside of what is timed.
func newByHand(ctx context.Context, t *Target, name string) (classic, error) {
	replicas, err := byMaster(ctx, t, name)
	if err != nil {
		return classic{}, err
	}
	return classic{func(ctx context.Context, chunk int, add func(redis.Pipeliner, place), see func([]redis.Cmder) error) error {
		var g errgroup.Group
		for master, replicas := range replicas {
			g.Go(func() error {
				if err := pipelined(ctx, master, slices.Chunk(replicas, chunk), add, see); err != nil {
					return fmt.Errorf("%s: %w", master.Options().Addr, err)
				}
				return nil
			})
		}
		return g.Wait()
	}}, nil
}

// newByClient is the same as it is mostly written: pipelines of the cluster client, which knows where each command goes.
// Each holds as much for every master as the other way's do, in the order of slots: one after the other a pipeline would go to
// one master while the others wait, and what is written in no order at all lies so in the servers' memory, for all variants.
func newByClient(ctx context.Context, t *Target, name string) (classic, error) {
	replicas, err := byMaster(ctx, t, name)
	if err != nil {
		return classic{}, err
	}
	var dealt []place
	for i := 0; len(dealt) < len(t.slots(name)); i++ {
		for _, of := range replicas {
			if i < len(of) {
				dealt = append(dealt, of[i])
			}
		}
	}
	return classic{func(ctx context.Context, chunk int, add func(redis.Pipeliner, place), see func([]redis.Cmder) error) error {
		return pipelined(ctx, t.Client, slices.Chunk(dealt, chunk*len(replicas)), add, see)
	}}, nil
}

// byMaster is where the replicas go, by the master that has their slots now.
func byMaster(ctx context.Context, t *Target, name string) (map[*redis.Client][]place, error) {
	replicas := map[*redis.Client][]place{}
	for _, slot := range t.slots(name) {
		r := placeOf(name, slot)
		master, err := t.Client.MasterForKey(ctx, r.key)
		if err != nil {
			return nil, err
		}
		replicas[master] = append(replicas[master], r)
	}
	return replicas, nil
}

func pipelined(ctx context.Context, client redis.Cmdable, chunks iter.Seq[[]place], add func(redis.Pipeliner, place), see func([]redis.Cmder) error) error {
	for replicas := range chunks {
		cmds, err := client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, r := range replicas {
				add(pipe, r)
			}
			return nil
		})
		if err == nil {
			err = see(cmds)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unseen: that no command failed is enough.
func unseen([]redis.Cmder) error { return nil }

// publish replaces every replica: the members go to a key beside it, which is then renamed over it.
func (c classic) publish(ctx context.Context, members []any) error {
	return c.each(ctx, chunk(len(members)), func(pipe redis.Pipeliner, r place) {
		pipe.Del(ctx, r.stage)
		_ = pipe.Process(ctx, setCommand(ctx, "sadd", r.stage, members))
		pipe.Rename(ctx, r.stage, r.key)
	}, unseen)
}

// apply adds and removes members of every replica.
func (c classic) apply(ctx context.Context, add, remove []any) error {
	return c.each(ctx, chunk(len(add)+len(remove)), func(pipe redis.Pipeliner, r place) {
		_ = pipe.Process(ctx, setCommand(ctx, "sadd", r.key, add))
		_ = pipe.Process(ctx, setCommand(ctx, "srem", r.key, remove))
	}, unseen)
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
