package scenarios

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/ring"
)

// lookups are so many that timing them does not show, so the p50 in µs is a lookup's in ns.
const lookups = 1000

func ringParts() []Part {
	return []Part{
		{
			Name: "ring-nodes", Doc: fmt.Sprintf("%d lookups of keys of 14 B at a time, by the number of nodes", lookups),
			metric: "response_p50", takes: 3 * time.Second, run: ringNodes,
		},
		{
			Name: "ring-ways", Doc: fmt.Sprintf("%d lookups of keys of 14 B at a time, among 10 nodes", lookups),
			metric: "response_p50", takes: 3 * time.Second, run: ringWays,
		},
	}
}

func ringNodes(ctx context.Context, s *stage) (*bench.Result, error) {
	var variants []bench.Variant
	for _, n := range []int{3, 10, 100, 1000} {
		r, err := ring.New(numberedNodes(n), nil)
		if err != nil {
			return nil, err
		}
		variants = append(variants, lookUp(fmt.Sprint(n), r.Index))
	}
	return s.bench(ctx, bench.Options{Load: s.opts.load(2*time.Second, 10*time.Second)}, variants...)
}

func ringWays(ctx context.Context, s *stage) (*bench.Result, error) {
	nodes := numberedNodes(10)
	var made []*ring.Ring
	for _, o := range []*ring.Options{nil, {HashTags: true}, {Placement: ring.Classic{}}} {
		r, err := ring.New(nodes, o)
		if err != nil {
			return nil, err
		}
		made = append(made, r)
	}
	table, live, classic := made[0], ring.NewLive(made[1]), made[2]
	return s.bench(ctx, bench.Options{Load: s.opts.load(2*time.Second, 10*time.Second)},
		lookUp("owner", table.Index),
		lookUp("first-three", func(key string) int {
			a, b, c := table.Index3(key)
			return a + b + c
		}),
		lookUp("live-with-tags", func(key string) int { return len(live.Locate(key)) }),
		lookUp("classic", classic.Index),
		lookUp("fnv-modulo", func(key string) int {
			h := uint64(14695981039346656037)
			for i := range len(key) {
				h = (h ^ uint64(key[i])) * 1099511628211
			}
			return int(h % uint64(len(nodes)))
		}),
	)
}

func numberedNodes(n int) []ring.Node {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("shard-", i+1)
	}
	return ring.Nodes(names...)
}

var lookedUp = sync.OnceValue(func() []string {
	keys := make([]string, 1<<16)
	for i := range keys {
		keys[i] = fmt.Sprintf("user:%09d", i*7919)
	}
	return keys
})

// lookUp is a variant that looks up different keys each time.
func lookUp(name string, find func(key string) int) bench.Variant {
	keys := lookedUp()
	for _, key := range keys {
		find(key) // what is found once, and kept
	}
	at, sum := 0, 0
	return bench.Func(name, func(context.Context) error {
		at = (at + lookups) % (len(keys) - lookups)
		for _, key := range keys[at:][:lookups] {
			sum += find(key)
		}
		return nil
	})
}
