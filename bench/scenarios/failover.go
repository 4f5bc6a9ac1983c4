package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

func failoverParts() []Part {
	return []Part{{
		Name: "failover", Doc: "one of 3 shards is killed, or frozen: until a write of one of its keys is taken; and killed, started again empty: until it serves",
		metric: "response_p50", takes: 40 * time.Second, slice: 1, faults: true, run: failover,
	}}
}

// faultPatience is for how long what should take a second or two is waited for.
const faultPatience = 20 * time.Second

// failovers is a cache that loses a shard again and again.
type failovers struct {
	cache *tiercache.Cache[string]
	node  *harness.Node
	shard int // its place among the shards
	key   string
}

func failover(ctx context.Context, s *stage) (res *bench.Result, err error) {
	f, end, err := newFailovers(ctx, s)
	if err != nil {
		return nil, err
	}
	defer end(&err)
	rounds := 5
	if s.opts.Rounds != 0 {
		rounds = s.opts.Rounds
	}
	variants := f.variants()
	// Each variant, and the twin, once a round.
	l := bench.Load{Ops: int64(rounds * (len(variants) + 1)), SkipWarmUp: true}
	switch {
	case s.opts.Duration > 0:
		l = bench.Load{Duration: s.opts.Duration, SkipWarmUp: true}
	case s.opts.Long:
		l.Ops *= 4
	}
	return s.bench(ctx, bench.Options{Load: l, Rounds: rounds, SkipCounters: true}, variants...)
}

// newFailovers returns a cache without L1 over the shards, and how to be done with it.
func newFailovers(ctx context.Context, s *stage) (f *failovers, end func(*error), err error) {
	if len(s.target.Nodes) == 0 || len(s.target.Nodes) != len(s.target.Shards) {
		return nil, nil, errors.New("bench: failover kills servers: give it a Target with the Nodes behind its Shards")
	}
	shards := map[string]tiercache.Shard{}
	for i, client := range s.target.Shards {
		shards[fmt.Sprint("shard-", i+1)] = goredis.NewShard(client)
	}
	f = &failovers{shard: 1, node: s.target.Nodes[1]}
	f.cache, err = tiercache.New[string](shards, &tiercache.Options{Namespace: s.prefix, LocalBytes: -1})
	if err != nil {
		return nil, nil, err
	}
	c := &caches{one: f.cache, clients: s.target.Shards, prefix: s.prefix}
	end = func(err *error) {
		*err = errors.Join(*err, f.cache.Close())
		s.clean(ctx, err, c.remove)
	}
	for i := 0; f.cache.Ring().Index(f.key) != f.shard || f.key == ""; i++ {
		f.key = fmt.Sprint("key:", i)
	}
	if err := f.serves(ctx); err != nil {
		end(&err)
		return nil, nil, err
	}
	return f, end, nil
}

func (f *failovers) variants() []bench.Variant {
	kill := func(context.Context) error { return f.node.Kill() }
	restart := func(ctx context.Context) error { return f.node.Restart(ctx, harness.Empty) }
	return []bench.Variant{
		f.variant("killed", kill, restart, false),
		f.variant("frozen", func(context.Context) error { return f.node.Freeze() }, func(context.Context) error { return f.node.Thaw() }, false),
		f.variant("returned", kill, restart, true),
	}
}

// variant loses the shard and gets it back. What counts is the one or the other.
func (f *failovers) variant(name string, lose, back func(context.Context) error, counts bool) bench.Variant {
	return bench.Variant{Name: name, Setup: func(context.Context, int) (*bench.Subject, error) {
		return &bench.Subject{Batch: func(ctx context.Context, ops int) (*bench.Batch, error) {
			b := &bench.Batch{}
			for range ops {
				gone, returned, err := f.once(ctx, lose, back)
				if err != nil {
					return nil, err
				}
				if counts {
					gone = returned
				}
				b.Took = append(b.Took, gone)
			}
			return b, nil
		}}, nil
	}}
}

// once loses the shard until a write of its key is taken, and gets it back until it
// serves. Also when ctx ends it is got back.
func (f *failovers) once(ctx context.Context, lose, back func(context.Context) error) (gone, returned time.Duration, err error) {
	if err := lose(ctx); err != nil {
		return 0, 0, err
	}
	start := time.Now()
	err = f.taken(ctx)
	gone = time.Since(start)
	restoring, cancel := context.WithTimeout(context.WithoutCancel(ctx), faultPatience)
	defer cancel()
	if err := errors.Join(err, back(restoring)); err != nil {
		return gone, 0, err
	}
	start = time.Now()
	err = f.serves(ctx)
	return gone, time.Since(start), err
}

// every is how often a write is tried, however long those before it take.
const every = 5 * time.Millisecond

// taken waits until a write of the key is.
func (f *failovers) taken(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, faultPatience)
	defer cancel()
	most := int(faultPatience / every)
	outcomes := make(chan error, most)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last error
	for tried := 0; ; {
		select {
		case <-tick.C:
			if tried++; tried <= most {
				go func() { outcomes <- f.cache.Set(ctx, f.key, cacheValue) }()
			}
		case err := <-outcomes:
			if err == nil {
				return nil
			}
			last = err
		case <-ctx.Done():
			return errors.Join(ctx.Err(), last)
		}
	}
}

// serves waits until all shards serve.
func (f *failovers) serves(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, faultPatience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		serving := 0
		for _, h := range f.cache.Health() {
			if h.State == tiercache.ShardServing {
				serving++
			}
		}
		if serving == len(f.cache.Health()) {
			return f.cache.Set(ctx, f.key, cacheValue)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("bench: %d shards serve: %w", serving, ctx.Err())
		}
	}
}
