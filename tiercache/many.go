package tiercache

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/shardkit/shardkit/tiercache/internal/hot"
)

// GetMany returns the values of keys, each shard asked at most once, all at one
// time. What is missing is loaded with one call of load, unless load is nil, and
// stored as by GetOrLoad. Keys without a value are not in the map.
//
// The error is a *KeysError that names the keys whose shard did not answer, where
// load is nil, or all that load was to return, where it failed. The other keys'
// values are there.
func (c *Cache[V]) GetMany(ctx context.Context, keys []string, load BatchLoader[V], opts ...CallOption) (map[string]V, error) {
	values := make(map[string]V, len(keys))
	failed := KeysError{Op: "get"}
	_, tags, _, err := c.callOpts(opts)
	if err == nil {
		err = c.closed()
	}
	if err != nil {
		failed.add(err, keys...)
		return values, failed.orNil()
	}
	rest, due := c.getLocal(keys, values, &failed)
	if load != nil && len(due) > 0 {
		c.refresh(ctx, due, load, opts)
	}
	parts := c.getShards(ctx, rest)
	var missing []*part[V]
	for _, p := range parts {
		p.take(values)
		if load == nil && p.err != nil {
			failed.add(&ShardError{p.remote.name, "get", p.err}, p.missing...)
		}
		if len(p.missing) > 0 {
			missing = append(missing, p)
		}
	}
	if load == nil || len(missing) == 0 {
		return values, failed.orNil()
	}
	if err := ctx.Err(); err != nil {
		for _, p := range missing {
			failed.add(err, p.missing...)
		}
		return values, failed.orNil()
	}
	c.loadMany(ctx, missing, load, opts, tags, values, &failed)
	return values, failed.orNil()
}

// getLocal answers what L1 can, and returns the other keys, each once, and those
// that are due to be loaded ahead of their end.
func (c *Cache[V]) getLocal(keys []string, values map[string]V, failed *KeysError) (rest, due []string) {
	rest = make([]string, 0, len(keys))
	for _, key := range keys {
		e := c.hit(key)
		if e == nil {
			rest = append(rest, key)
			continue
		}
		c.stats.localHits.add()
		if c.due(e) {
			due = append(due, key)
		}
		switch value, err := c.value(e); {
		case err == nil:
			values[key] = value
		case !errors.Is(err, ErrNotFound):
			failed.add(err, key)
		}
	}
	slices.Sort(rest)
	return slices.Compact(rest), due
}

// A part is the keys of one shard in an operation on many.
type part[V any] struct {
	remote  route
	keys    []string
	found   []found[V]
	missing []string
	over    []string // as in found
	err     error
}

// take moves what was found into values.
func (p *part[V]) take(values map[string]V) {
	for i, f := range p.found {
		if f.found && !f.absent {
			values[p.keys[i]] = f.value
		}
	}
}

// getShards reads the keys, one round trip a shard; a second one for hot keys of which
// a copy is missing.
func (c *Cache[V]) getShards(ctx context.Context, keys []string) []*part[V] {
	parts, shelves := c.parts(keys), map[*remote][]*hot.Key[heat]{}
	for _, p := range parts {
		p.keys = slices.DeleteFunc(p.keys, func(key string) bool {
			k := c.counted(key)
			if k == nil {
				return false
			}
			holder := c.inTurn(p.remote, k)
			if holder != nil {
				shelves[holder] = append(shelves[holder], k)
			} else if c.promotes(p.remote, k) {
				c.begin(func() { c.promote(c.ctx, p.remote, k) })
			}
			return holder != nil
		})
	}
	if len(shelves) == 0 {
		each(parts, func(p *part[V]) { c.readPart(ctx, p) })
		return parts
	}
	var copies part[V]
	var gone []string
	var mu sync.Mutex
	var wg sync.WaitGroup
	for holder, shelf := range shelves {
		wg.Go(func() {
			fs := c.fetchCopies(ctx, holder, shelf)
			mu.Lock()
			defer mu.Unlock()
			for i, f := range fs {
				if f.found {
					copies.keys, copies.found = append(copies.keys, shelf[i].Name), append(copies.found, f)
				} else {
					gone = append(gone, shelf[i].Name)
				}
			}
		})
	}
	each(parts, func(p *part[V]) { c.readPart(ctx, p) })
	wg.Wait()
	more := c.parts(gone)
	each(more, func(p *part[V]) { c.readPart(ctx, p) })
	return append(append(parts, more...), &copies)
}

func (c *Cache[V]) parts(keys []string) []*part[V] {
	var parts []*part[V]
	for _, group := range c.routing.Load().group(keys) {
		p := &part[V]{remote: group.route}
		for _, i := range group.keys {
			p.keys = append(p.keys, keys[i])
		}
		parts = append(parts, p)
	}
	return parts
}

func (c *Cache[V]) readPart(ctx context.Context, p *part[V]) {
	if len(p.keys) == 0 {
		return
	}
	v := p.remote.synced()
	rd, err := p.remote.read(ctx, c.places(p.keys))
	if errors.Is(err, errRouted) {
		c.readApart(ctx, p)
		return
	}
	if err != nil {
		p.err, p.missing, p.over = err, p.keys, make([]string, len(p.keys))
		return
	}
	p.found = make([]found[V], len(p.keys))
	for i, key := range p.keys {
		p.found[i] = c.accept(p.remote, v, rd, key, rd.values[i])
	}
	c.inheritMany(ctx, p)
	for i, key := range p.keys {
		c.count(p.found[i])
		if !p.found[i].found {
			p.missing = append(p.missing, key)
			p.over = append(p.over, p.found[i].over)
		}
	}
}

// readApart reads the keys of a part by the routes that they have now.
func (c *Cache[V]) readApart(ctx context.Context, p *part[V]) {
	p.found = make([]found[V], len(p.keys))
	for i, key := range p.keys {
		f, err := c.fetchOwner(ctx, c.route(key), nil, key)
		if err != nil {
			p.err = err
		}
		if p.found[i] = f; !f.found {
			p.missing, p.over = append(p.missing, key), append(p.over, f.over)
		}
	}
}

// each runs f for all parts at one time.
func each[P any](parts []P, f func(P)) {
	if len(parts) == 0 {
		return
	}
	var wg sync.WaitGroup
	for _, p := range parts[1:] {
		wg.Go(func() { f(p) })
	}
	f(parts[0])
	wg.Wait()
}

// loadMany loads what is missing of all parts, with one call for what nobody else
// in this process loads.
func (c *Cache[V]) loadMany(ctx context.Context, parts []*part[V], load BatchLoader[V], opts []CallOption, tags []string, values map[string]V, failed *KeysError) {
	var all []boarded[V]
	var own []*flight[V]
	for _, p := range parts {
		for i, key := range p.missing {
			b := c.join(key, tags)
			all = append(all, b)
			if !b.own {
				continue
			}
			own = append(own, b.flight)
			b.asked, b.over = true, p.over[i]
			if p.err != nil {
				b.lose()
			}
		}
	}
	if len(own) > 0 {
		c.fly(ctx, own, load, opts)
	}
	late, stop := c.soft()
	defer stop()
	for _, b := range all {
		value, err := c.wait(ctx, b, late)
		if err == errOutdated {
			value, err = c.load(ctx, b.key, load, opts)
		}
		switch {
		case err == nil:
			values[b.key] = value
		case !errors.Is(err, ErrNotFound):
			failed.add(err, b.key)
		}
	}
}
