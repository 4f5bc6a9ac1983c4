package tiercache

import (
	"hash/maphash"
	"sync/atomic"
)

// A view is what this process believes about one shard's data, from when it
// began to listen until something went wrong. What L1 took under another view
// does not count. Its generation is its number.
type view struct {
	generation uint64

	// epoch is 0 until the view is synchronised: from then on no notice can go
	// missing without the view's end. It is written once.
	epoch atomic.Int64

	// base is the sequence when the view was synchronised, written just before epoch:
	// the stripes know every later write.
	base int64

	// stripes hold, for the keys that hash to each, the sequence of the last write
	// that is known. A value that was read at a lower sequence may be from before
	// that write, and does not enter L1.
	stripes [stripes]atomic.Int64

	// changes hold, for the keys that hash to each, when a change of one was last
	// told by Options.Tracking, ns: what was read from before then does not enter L1.
	// nil without it.
	changes *[stripes]atomic.Int64

	// heard is the last sequence heard of: the view knows of each tag invalidated from
	// base to there. tags hold, for the tags that hash to each, when one last was.
	heard atomic.Int64
	tags  [tagStripes]atomic.Int64

	// invalidations counts those of tags, as they are heard of.
	invalidations atomic.Int64

	// failed counts this process's own writes with unknown outcome.
	failed atomic.Int64

	// flights are the loads under way. A write ends its key's flight for who comes
	// later, and a new view all of them.
	flights flights
}

func (r *remote) newView() *view {
	v := &view{generation: r.generation.Load()}
	if r.opts.Tracking {
		v.changes = new([stripes]atomic.Int64)
	}
	return v
}

const (
	stripes    = 1 << 12
	tagStripes = 1 << 10
)

var stripeSeed = maphash.MakeSeed()

func (v *view) stripe(key string) *atomic.Int64 {
	return &v.stripes[stripeOf(key)]
}

func stripeOf(key string) uint64 { return maphash.String(stripeSeed, key) % stripes }

// wrote notes that the write of the given sequence changed key.
func (v *view) wrote(key string, sequence int64) {
	raise(v.stripe(key), sequence)
	v.flights.forget(key)
}

// changed notes that key changed before now, in no order with writes. The caller
// holds the listener's mu.
func (v *view) changed(key string, now int64) {
	v.changes[stripeOf(key)].Store(now)
}

// unchanged reports whether no change of key was told since.
func (v *view) unchanged(key string, since int64) bool {
	if v.changes == nil {
		return true
	}
	told := v.changes[stripeOf(key)].Load()
	return told == 0 || told < since
}

// raise sets n to at least to.
func raise(n *atomic.Int64, to int64) {
	for old := n.Load(); old < to && !n.CompareAndSwap(old, to); old = n.Load() {
	}
}
