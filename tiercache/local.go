package tiercache

import (
	"math"
	"sync/atomic"

	"github.com/maypok86/otter/v2"
)

// An entry is a value in L1.
type entry[V any] struct {
	remote     *remote
	stand      *stand // nil if remote owns the key
	generation uint64 // of the view under which it was read
	sequence   int64  // it is what the shard held after this write
	began      int64  // when the shard was asked, ns
	expires    int64  // ns

	due atomic.Int64 // from when on a load is begun ahead of that, ns

	value   V               // where the coder keeps values
	payload string          // where it does not
	tags    []*atomic.Int64 // the stripes of its tags
	size    uint32          // of the payload
	codec   byte
	absent  bool
	blind   bool // loaded while the shard did not answer: counts without trust
}

// entryBytes is what an entry takes beside its key and its bytes.
const entryBytes = 150

func newLocal[V any](opts *Options) (*otter.Cache[string, *entry[V]], error) {
	o := &otter.Options[string, *entry[V]]{}
	switch {
	case opts.LocalEntries > 0:
		o.MaximumSize = opts.LocalEntries
	case opts.LocalBytes > 0:
		o.MaximumWeight = uint64(opts.LocalBytes)
		o.Weigher = func(key string, e *entry[V]) uint32 {
			return uint32(min(entryBytes+len(key)+int(e.size), math.MaxUint32))
		}
	default:
		return nil, nil
	}
	return otter.New(o)
}

// hit is the entry of key if it counts.
func (c *Cache[V]) hit(key string) *entry[V] {
	if c.local == nil {
		return nil
	}
	e, ok := c.local.GetIfPresent(key)
	if !ok {
		return nil
	}
	if e.stand != nil && e.stand.routing != c.routing.Load() {
		return nil // the owner may be back
	}
	if later(e.tags, e.sequence) {
		return nil
	}
	t := now()
	if t >= e.expires || !e.remote.counts(e.generation, t) && !(e.blind && e.remote.generation.Load() == e.generation) {
		return nil
	}
	return e
}

// before is the value that L1 holds of key, whether it counts or not; nil without.
func (c *Cache[V]) before(key string) (e *entry[V], value V) {
	if c.local == nil {
		return nil, value
	}
	e, ok := c.local.GetIfPresent(key)
	if !ok {
		return nil, value
	}
	value, err := c.value(e)
	if err != nil {
		return nil, value
	}
	return e, value
}

// value is what a caller gets of e.
func (c *Cache[V]) value(e *entry[V]) (V, error) {
	if e.absent || c.coder.keep {
		if e.absent {
			var zero V
			return zero, ErrNotFound
		}
		return e.value, nil
	}
	return c.coder.decode(e.codec, e.payload)
}

// remember puts e into L1, unless a later write of the key is known.
func (c *Cache[V]) remember(v *view, key string, e *entry[V]) {
	if c.local == nil {
		return
	}
	stripe := v.stripe(key)
	c.local.Compute(key, func(old *entry[V], found bool) (*entry[V], otter.ComputeOp) {
		// Within the lock of the key: a notice raises the stripe before it takes it.
		if stripe.Load() > e.sequence && !c.off.stripes || !v.unchanged(key, e.began) {
			c.stats.refusedLocal.Add(1)
			return old, otter.CancelOp
		}
		if found && old.generation == e.generation && old.remote == e.remote && old.sequence > e.sequence {
			return old, otter.CancelOp
		}
		return e, otter.WriteOp
	})
}

// rememberBlind puts e into L1 for a moment, while nobody can say whether it is
// the last value, if this process has not written meanwhile.
func (c *Cache[V]) rememberBlind(v *view, key string, e *entry[V], stripe, failed int64) {
	if c.local == nil {
		return
	}
	c.local.Compute(key, func(old *entry[V], _ bool) (*entry[V], otter.ComputeOp) {
		if v.stripe(key).Load() != stripe || v.failed.Load() != failed {
			return old, otter.CancelOp
		}
		return e, otter.WriteOp
	})
}

// outdate removes key's entry if it is from before the write of the given
// sequence. It takes the key's lock even where there is no entry: one may be about
// to come.
func (c *Cache[V]) outdate(r *remote, key string, sequence int64) {
	if c.local == nil {
		return
	}
	c.local.Compute(key, func(old *entry[V], found bool) (*entry[V], otter.ComputeOp) {
		// A change of which no more is known than that it was after the value's end was
		// that end: StaleFor goes on from there.
		if !found || old.remote == r && (old.sequence >= sequence || sequence == math.MaxInt64 && now() >= old.expires) {
			return old, otter.CancelOp
		}
		return old, otter.InvalidateOp
	})
}

// drop removes key's entry.
func (c *Cache[V]) drop(key string) {
	if c.local != nil {
		c.local.Invalidate(key)
	}
}
