package scenarios

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// The sharded sets of the reading scenarios: some in each part of the cluster, all with the same content.
const (
	shardedKeys = 256
	matches     = 20 // of each sharded set are in the replicated one
	replicated  = 200
)

func intersectParts() []Part {
	var parts []Part
	for _, size := range []int{100, 5000} {
		parts = append(parts, readPart("intersect", size, "the %d members they share", matches, intersectVariants))
	}
	return parts
}

func countParts() []Part {
	return []Part{readPart("count", 5000, "how many they share, %d", matches, countVariants)}
}

func readPart(name string, size int, asked string, shared int, variants func(*reads) []bench.Variant) Part {
	return Part{
		Name:   fmt.Sprintf("%s-%d", name, size),
		Doc:    fmt.Sprintf("of a sharded set of %d strings and a replicated one of %d: %s", size, replicated, fmt.Sprintf(asked, shared)),
		metric: "response_p50", takes: 7 * time.Second, count: 100,
		run: func(ctx context.Context, s *stage) (*bench.Result, error) { return read(ctx, s, size, variants) },
	}
}

// reads is what the variants of a reading part ask.
type reads struct {
	set      *replset.Set
	sets     []*replset.Set // by other clients
	of       []Adapter
	client   *redis.ClusterClient
	keys     []string // sharded sets
	replicas []string // beside each
	global   string   // the replicated set's content as one plain key, for those who fetch it
}

func read(ctx context.Context, s *stage, size int, variants func(*reads) []bench.Variant) (res *bench.Result, err error) {
	c := content{size: replicated}
	r := &reads{client: s.target.Client, global: s.prefix + "-global"}
	if r.set, err = s.newSet(s.prefix); err != nil {
		return nil, err
	}
	if r.sets, r.of, err = s.others(s.prefix); err != nil {
		return nil, err
	}
	slots := s.target.slots(s.prefix)
	for i := range shardedKeys {
		key := slotmap.KeyForSlot(s.prefix+":subs", slots[i*len(slots)/shardedKeys])
		r.keys = append(r.keys, key)
		r.replicas = append(r.replicas, r.set.KeyFor(key))
	}
	defer s.clean(ctx, &err, func(ctx context.Context) error { return s.target.removeReplicas(ctx, s.prefix) })
	defer s.clean(ctx, &err, r.remove)
	if err := r.fill(ctx, c, size); err != nil {
		return nil, err
	}
	o := bench.Options{Load: s.opts.load(5*time.Second, 30*time.Second)}
	return s.bench(ctx, o, variants(r)...)
}

func (r *reads) fill(ctx context.Context, c content, size int) error {
	if err := r.set.Publish(ctx, c.version(0)); err != nil {
		return err
	}
	if err := r.client.SAdd(ctx, r.global, boxed(c.version(0))...).Err(); err != nil {
		return err
	}
	sharded := make([]any, size)
	for i := range sharded {
		n := i
		if i >= matches {
			n += 100_000
		}
		sharded[i] = c.member(n)
	}
	const chunk = 16
	for keys := range slices.Chunk(r.keys, chunk) {
		_, err := r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, key := range keys {
				pipe.SAdd(ctx, key, sharded...)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reads) remove(ctx context.Context) error {
	_, err := r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, key := range append(r.keys, r.global) {
			pipe.Unlink(ctx, key)
		}
		return nil
	})
	return err
}

// asking is a variant whose workers go through the sharded sets, each from a place of its own, and get to know how many
// members each shares with the replicated one.
func (r *reads) asking(name string, ask func(ctx context.Context, i int) (int, error)) bench.Variant {
	worker := func(w int) (bench.Op, error) {
		i := w * 31
		return func(ctx context.Context) error {
			i++
			n, err := ask(ctx, i%len(r.keys))
			if err == nil && n != matches {
				err = fmt.Errorf("%d members in common, not %d", n, matches)
			}
			return err
		}, nil
	}
	return bench.Variant{Name: name, Setup: func(context.Context, int) (*bench.Subject, error) {
		return &bench.Subject{Kinds: []bench.Kind{{Name: "read", Worker: worker}}}, nil
	}}
}

func intersectVariants(r *reads) []bench.Variant {
	variants := []bench.Variant{
		r.asking(bare, func(ctx context.Context, i int) (int, error) {
			members, err := r.client.SInter(ctx, r.keys[i], r.replicas[i]).Result()
			return len(members), err
		}),
		r.asking(ours, func(ctx context.Context, i int) (int, error) {
			members, err := r.set.Intersect(ctx, r.keys[i])
			return len(members), err
		}),
		r.fetchBoth(),
	}
	for n, set := range r.sets {
		variants = append(variants, r.asking(r.of[n].of(bare), func(ctx context.Context, i int) (int, error) {
			reply, err := r.of[n].Backend.Do(ctx, r.keys[i], []string{"SINTER", r.keys[i], r.replicas[i]})
			members, _ := reply.([]any)
			return len(members), err
		}), r.asking(r.of[n].of(ours), func(ctx context.Context, i int) (int, error) {
			members, err := set.Intersect(ctx, r.keys[i])
			return len(members), err
		}))
	}
	return variants
}

func countVariants(r *reads) []bench.Variant {
	variants := []bench.Variant{
		r.asking(bare, func(ctx context.Context, i int) (int, error) {
			n, err := r.client.SInterCard(ctx, 0, r.keys[i], r.replicas[i]).Result()
			return int(n), err
		}),
		r.asking(ours, func(ctx context.Context, i int) (int, error) { return r.set.Count(ctx, r.keys[i], 0) }),
		r.fetchBoth(),
	}
	for n, set := range r.sets {
		variants = append(variants, r.asking(r.of[n].of(bare), func(ctx context.Context, i int) (int, error) {
			reply, err := r.of[n].Backend.Do(ctx, r.keys[i], []string{"SINTERCARD", "2", r.keys[i], r.replicas[i]})
			count, _ := reply.(int64)
			return int(count), err
		}), r.asking(r.of[n].of(ours), func(ctx context.Context, i int) (int, error) { return set.Count(ctx, r.keys[i], 0) }))
	}
	return variants
}

// fetchBoth is the way of those who have no replica: both sets travel, from two nodes at once, and are intersected here.
func (r *reads) fetchBoth() bench.Variant {
	return r.asking(fetched, func(ctx context.Context, i int) (int, error) {
		var sharded, global *redis.StringSliceCmd
		_, err := r.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			sharded, global = pipe.SMembers(ctx, r.keys[i]), pipe.SMembers(ctx, r.global)
			return nil
		})
		if err != nil {
			return 0, err
		}
		in := make(map[string]struct{}, len(global.Val()))
		for _, m := range global.Val() {
			in[m] = struct{}{}
		}
		var both []string
		for _, m := range sharded.Val() {
			if _, shared := in[m]; shared {
				both = append(both, m)
			}
		}
		return len(both), nil
	})
}
