package tiercache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/maypok86/otter/v2"

	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/tiercache/internal/hot"
)

// A Cache holds values of type V in this process (L1) and on Redis shards (L2).
// It is safe for concurrent use.
type Cache[V any] struct {
	opts Options
	off  mechanisms
	*shardSet
	local   *otter.Cache[string, *entry[V]]
	coder   *coder[V]
	hot     *hot.Sketch[heat] // nil, if no key is to be hot
	stats   cacheStats
	loading sync.Mutex // held to begin a load, and to end ctx
	loads   sync.WaitGroup
	telling sync.WaitGroup
}

// New returns a cache over the given shards, which it names by the map's keys:
// a shard that keeps its name keeps its keys. Every process that shares the
// cache gives the same names.
//
// It does not wait for the shards. Until one has answered, its values are not
// held in L1.
func New[V any](shards map[string]Shard, opts *Options) (*Cache[V], error) {
	return newCache[V](shards, opts, mechanisms{})
}

func newCache[V any](shards map[string]Shard, options *Options, off mechanisms) (*Cache[V], error) {
	opts, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(shards) == 0 {
		return nil, errors.New("tiercache: no shards: give at least one")
	}
	names := slices.Sorted(maps.Keys(shards))
	placed, err := ring.New(ring.Nodes(names...), &ring.Options{Placement: opts.Ring})
	if err != nil {
		return nil, fmt.Errorf("tiercache: %w", err)
	}
	coder, err := newCoder[V](&opts)
	if err != nil {
		return nil, err
	}
	c := &Cache[V]{opts: opts, off: off, coder: coder, hot: newHot(&opts)}
	c.shardSet = &shardSet{opts: &c.opts, off: off, events: newEvents(opts.OnEvent)}
	if c.local, err = newLocal[V](&opts); err != nil {
		return nil, fmt.Errorf("tiercache: %w", err)
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.given = given{shards: maps.Clone(shards), print: placed.Fingerprint(), seen: map[uint64]int64{}}
	c.outdated = func(r *remote, key string, sequence int64) {
		c.wrote(r, key, sequence)
		c.outdate(r, key, sequence)
	}
	var remotes []*remote
	for i := range placed.Len() {
		name := placed.Name(i)
		if err := c.takes(name, shards[name]); err != nil {
			return nil, err
		}
		remotes = append(remotes, newRemote(name, shards[name], c.shardSet))
	}
	c.routing.Store(&routing{whole: placed, live: placed, remotes: remotes})
	for _, r := range remotes {
		c.start(r)
	}
	if c.events != nil {
		c.telling.Go(func() { c.events.run(c.ctx) })
	}
	return c, nil
}

// takes tells what is wrong with a shard.
func (c *Cache[V]) takes(name string, shard Shard) error {
	if shard == nil {
		return fmt.Errorf("tiercache: shard %q is nil", name)
	}
	if _, ok := shard.(Tracker); c.opts.Tracking && !ok {
		return fmt.Errorf("tiercache: Tracking: shard %q, a %T, is no Tracker", name, shard)
	}
	return nil
}

// Ring returns the placement of keys on shards.
func (c *Cache[V]) Ring() *ring.Ring { return c.routing.Load().whole }

// Close ends the subscriptions and the loads under way, and waits for them, but not
// for loaders that ignore their context. The shards stay open. Operations after Close fail with ErrClosed. It
// waits for Options.OnEvent, which therefore may not call it.
func (c *Cache[V]) Close() error {
	c.loading.Lock()
	c.cancel()
	c.loading.Unlock()
	c.shardSet.close()
	c.loads.Wait()
	for _, r := range c.remotes() {
		r.listener.mu.Lock()
		r.end(endLost, ErrClosed)
		r.listener.mu.Unlock()
	}
	c.telling.Wait()
	return nil
}

// closed is ErrClosed after Close.
func (c *Cache[V]) closed() error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	return nil
}

// route is where key is now.
func (c *Cache[V]) route(key string) route { return c.routing.Load().route(key) }

// place is the key's name on its shard.
func (c *Cache[V]) place(key string) string { return c.opts.Namespace + ":" + key }

func (c *Cache[V]) places(keys []string) []string {
	places := make([]string, len(keys))
	for i, key := range keys {
		places[i] = c.place(key)
	}
	return places
}
