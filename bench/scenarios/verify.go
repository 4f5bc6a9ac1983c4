package scenarios

import (
	"context"
	"fmt"
	"slices"
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
	plain, err := newByHand(ctx, s.target, s.prefix)
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
func (c classic) compare(ctx context.Context, members []string) error {
	want := slices.Sorted(slices.Values(members))
	return c.each(ctx, chunk(len(members)), func(pipe redis.Pipeliner, r place) { pipe.SMembers(ctx, r.key) }, func(cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			got := cmd.(*redis.StringSliceCmd).Val()
			slices.Sort(got)
			if !slices.Equal(got, want) {
				return fmt.Errorf("%v holds something else", cmd.Args()[1])
			}
		}
		return nil
	})
}
