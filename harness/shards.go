package harness

import (
	"cmp"
	"context"
	"fmt"
)

// Shards are independent servers, named "shard-1", "shard-2" and so on.
type Shards struct {
	*Group
}

// StartShards starts Options.Shards servers, or takes those named by address, and returns when all answer. It gives up when ctx
// ends, or after 30 s if ctx has no deadline; then nothing is left behind.
//
// The error is ErrNoServer if there is nothing to start. If a server fails it holds the end of that server's log.
func StartShards(ctx context.Context, o Options) (*Shards, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := withTimeoutUnlessSet(ctx, startTimeout)
	defer cancel()
	if addrs, from := o.addresses("SHARDKIT_SHARDS"); addrs != nil {
		if s, err := attachShards(ctx, o, addrs, from); s != nil || err != nil {
			return s, err
		}
	}
	count := cmp.Or(o.Shards, defaultNodes)
	p := plan{
		count: count,
		specs: func(_ context.Context, _ Launcher, endpoints []endpoint, shared common) ([]Spec, []string, error) {
			specs := make([]Spec, count)
			for i, e := range endpoints {
				specs[i] = Spec{
					Name:  fmt.Sprintf("shard-%d", i+1),
					Port:  e.port,
					Flags: append(shared.flags(e.port), o.Args...),
					Files: shared.files(),
				}
			}
			return specs, make([]string, count), nil
		},
		wait: func(context.Context, *Group) error { return nil },
	}
	g, err := p.start(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Shards{g}, nil
}
