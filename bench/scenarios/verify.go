package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/replset"
)

// sampled is how many slots a sampling look takes.
const sampled = 256

func verifyParts() []Part {
	return []Part{{
		Name: "verify", Doc: fmt.Sprintf("200 strings of 13 bytes in each of 16384 slots: Verify of all, of a sample of %d, and reading all by SMEMBERS in pipelines", sampled),
		metric: "response_p50", takes: 12 * time.Second, slice: 1, count: 2, run: verify,
	}}
}

func verify(ctx context.Context, s *stage) (res *bench.Result, err error) {
	members := content{size: 200}.version(0)
	defer s.clean(ctx, &err, func(ctx context.Context) error { return s.target.removeReplicas(ctx, s.prefix) })
	set, err := s.newSet(s.prefix)
	if err != nil {
		return nil, err
	}
	if err := set.Publish(ctx, members); err != nil {
		return nil, err
	}
	plain, err := newClassic(ctx, s.target, s.prefix)
	if err != nil {
		return nil, err
	}
	looking := func(name string, set *replset.Set, o *replset.VerifyOptions) bench.Variant {
		return bench.Func(name, func(ctx context.Context) error {
			v, err := set.Verify(ctx, o)
			if err == nil && !v.Consistent() {
				err = fmt.Errorf("%d of %d replicas drifted", len(v.Drifted), v.Checked)
			}
			return err
		})
	}
	sample := min(sampled, len(s.target.slots(s.prefix)))
	variants := []bench.Variant{
		looking(ours, set, nil),
		looking("sample", set, &replset.VerifyOptions{Sample: sample}),
		bench.Func("smembers", func(ctx context.Context) error { return plain.compare(ctx, members) }),
	}
	sets, of, err := s.others(s.prefix)
	if err != nil {
		return nil, err
	}
	for i, set := range sets {
		variants = append(variants, looking(of[i].of(ours), set, nil))
	}
	return s.bench(ctx, bench.Options{Load: s.opts.load(8*time.Second, 40*time.Second)}, variants...)
}

// compare reads every replica and compares it here, as it is done by hand.
func (c *classic) compare(ctx context.Context, members []string) error {
	want := slices.Sorted(slices.Values(members))
	errs := make([]error, len(c.masters))
	var wg sync.WaitGroup
	for i, m := range c.masters {
		wg.Go(func() {
			for keys := range slices.Chunk(m.keys, chunk(len(members))) {
				cmds, err := m.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
					for _, key := range keys {
						pipe.SMembers(ctx, key)
					}
					return nil
				})
				if err != nil {
					errs[i] = err
					return
				}
				for _, cmd := range cmds {
					got := cmd.(*redis.StringSliceCmd).Val()
					slices.Sort(got)
					if !slices.Equal(got, want) {
						errs[i] = fmt.Errorf("%v holds something else", cmd.Args()[1])
						return
					}
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
