package tiercache

import (
	"context"
	"errors"
	"math"

	"github.com/shardkit/shardkit/tiercache/internal/hot"
)

// Get returns the key's value: from L1, or from the key's shard in one round
// trip. Without one it is ErrNotFound; where the shard does not answer, a
// *ShardError.
func (c *Cache[V]) Get(ctx context.Context, key string) (V, error) {
	if e := c.hit(key); e != nil {
		c.stats.localHits.add()
		return c.value(e)
	}
	var zero V
	if err := c.closed(); err != nil {
		return zero, err
	}
	r := c.route(key)
	f, err := c.fetch(ctx, r, key)
	switch {
	case err != nil:
		return zero, &ShardError{r.name, "get", err}
	case !f.found || f.absent:
		return zero, ErrNotFound
	}
	return f.value, nil
}

// found is what a shard holds for a key.
type found[V any] struct {
	value         V
	found, absent bool
	text          string // its envelope
	ends          int64  // of its life, ns
	over          string // head of what is there and is no value: a load is to replace it
}

// fetch reads one key from its shard, or a hot one from one of those that share
// it.
func (c *Cache[V]) fetch(ctx context.Context, r route, key string) (f found[V], err error) {
	k := c.counted(key)
	if k != nil {
		if holder := c.inTurn(r, k); holder != nil {
			if f = c.fetchCopies(ctx, holder, []*hot.Key[heat]{k})[0]; f.found {
				return f, nil
			}
		}
	}
	f, err = c.fetchOwner(ctx, r, k, key)
	if errors.Is(err, errRouted) {
		f, err = c.fetchOwner(ctx, c.route(key), k, key)
	}
	return f, err
}

func (c *Cache[V]) fetchOwner(ctx context.Context, r route, k *hot.Key[heat], key string) (f found[V], err error) {
	v := r.synced()
	var rd *reading
	if k != nil && c.promotes(r, k) {
		rd, err = c.promote(ctx, r, k)
	} else {
		rd, err = r.read(ctx, []string{c.place(key)})
	}
	if err != nil {
		return f, err
	}
	if f = c.accept(r, v, rd, key, rd.values[0]); !f.found && f.over == "" {
		if old := c.inherit(ctx, r, key); old.found {
			f = old
		}
	}
	c.count(f)
	return f, nil
}

func (c *Cache[V]) count(f found[V]) {
	if f.found {
		c.stats.shardHits.Add(1)
	} else {
		c.stats.misses.Add(1)
	}
}

// accept judges what a shard returned for key in a reading that began under v,
// and takes it into L1.
func (c *Cache[V]) accept(r route, v *view, rd *reading, key string, raw any) (f found[V]) {
	if text, ok := raw.(voided); ok {
		c.stats.voided.Add(1)
		f.over = string(text[:headSize])
		return f
	}
	text, ok := raw.(string)
	if !ok || !rd.known {
		return f
	}
	r.doubt(v, rd.state.epoch)
	e, ok := parseEnvelope(text)
	switch {
	case !ok:
		c.corrupt(r.remote, key, nil)
		f.over = text[:min(headSize, len(text))]
		return f
	case e.marker() || e.outage != rd.outage && !(c.off.outage && e.outage != 0 && rd.outage != 0) || e.epoch != rd.state.epoch && !c.off.epoch:
		return f
	}
	if !e.absent() {
		var err error
		if f.value, err = c.coder.decode(e.codec, e.payload); err != nil {
			c.corrupt(r.remote, key, err)
			f.over = text[:headSize]
			return f
		}
	}
	left := r.remaining(e.expiry, rd.sent)
	f.found, f.absent, f.text, f.ends = true, e.absent(), text, rd.sent+int64(left)
	if v != nil && (v.epoch.Load() == rd.state.epoch || c.off.epoch) {
		c.remember(v, key, c.newEntry(r, v, f.value, e.codec, e.payload, f.absent, e.tags, rd.state.sequence, rd.sent, int64(left)))
	}
	return f
}

func (c *Cache[V]) corrupt(r *remote, key string, err error) {
	c.stats.corrupt.Add(1)
	c.events.tell(EventCorrupt, r.name, key, err)
}

// newEntry is an entry that lives for left ns from at, and no longer than
// Options.LocalTTL.
func (c *Cache[V]) newEntry(r route, v *view, value V, codec byte, payload string, absent bool, tags []string, sequence, at, left int64) *entry[V] {
	if c.opts.LocalTTL > 0 {
		left = min(left, int64(c.opts.LocalTTL))
	}
	e := &entry[V]{
		remote: r.remote, stand: r.stand, generation: v.generation, sequence: sequence, began: at, expires: at + left,
		size: uint32(min(c.coder.size(codec, payload), math.MaxUint32)), codec: codec, absent: absent, tags: v.stripesOf(tags),
	}
	e.due.Store(c.aheadOf(e.expires, left))
	if c.coder.keep {
		e.value = value
	} else {
		e.payload = payload
	}
	return e
}
