package tiercache

import (
	"sync/atomic"
	"time"

	"github.com/shardkit/shardkit/tiercache/internal/hot"
)

const (
	// hotWindow is the time within which reads make a key hot.
	hotWindow = 5 * time.Second
	// hotCopies is how many other shards hold copies of a hot key's value.
	hotCopies = 2
)

// HotKey is a key that this process reads often from shards: what L1 answers is
// no load on any.
type HotKey struct {
	Key    string
	Reads  int      // within the last 5 s, about; counted to 262143
	Shards []string // between which the reads are spread, its owner first
}

// HotKeys returns the hot keys, most read first, at most 1024. There are none
// with Options.HotReads below zero.
func (c *Cache[V]) HotKeys() []HotKey {
	if c.hot == nil {
		return nil
	}
	keys, reads := c.hot.Top(now())
	rs := c.routing.Load()
	found := make([]HotKey, len(keys))
	for i, k := range keys {
		found[i] = HotKey{Key: k.Name, Reads: reads[i], Shards: []string{rs.route(k.Name).name}}
		for _, holder := range rs.holders(k.Name) {
			found[i].Shards = append(found[i].Shards, holder.name)
		}
	}
	return found
}

// holders are the shards that may hold copies of key: the next ones of its walk
// after its owner, but for those that are out. There are none while the owner is.
func (rs *routing) holders(key string) []*remote {
	var array [1 + hotCopies]int
	walk := rs.whole.AppendN(array[:0], key, len(array))
	if !rs.live.IsLive(walk[0]) {
		return nil
	}
	holders := make([]*remote, 0, hotCopies)
	for _, node := range walk[1:] {
		if rs.live.IsLive(node) {
			holders = append(holders, rs.remotes[node])
		}
	}
	return holders
}

// heat is what a cache keeps of a hot key.
type heat struct {
	turn  atomic.Uint32 // which shard is asked next
	due   atomic.Int64  // when copies are to be made, ns; 0: now
	tried atomic.Int64  // when that was last done
	gone  atomic.Bool   // a copy was missing
	watch atomic.Pointer[watch]
}

// A watch is the last write of a hot key that is known: exactly, where a view's
// stripes know it for some 4096th of all keys together.
type watch struct {
	owner *remote
	since atomic.Int64 // it knows of the writes after this sequence; 0: not yet
	wrote atomic.Int64 // the sequence of the last one
}

func newHot(opts *Options) *hot.Sketch[heat] {
	if opts.HotReads < 0 {
		return nil
	}
	return hot.New[heat](opts.HotReads, hotWindow)
}

// counted counts a read of key from a shard, and returns the key if it is hot.
func (c *Cache[V]) counted(key string) *hot.Key[heat] {
	if c.hot == nil {
		return nil
	}
	return c.hot.Read(key, now())
}

// wrote notes that the write of the given sequence changed key.
func (c *Cache[V]) wrote(r *remote, key string, sequence int64) {
	if c.hot == nil {
		return
	}
	if k := c.hot.Hot(key); k != nil {
		if w := k.Value.watch.Load(); w != nil && w.owner == r {
			raise(&w.wrote, sequence)
		}
	}
}

// watched is the watch on the owner's writes of the key.
func (h *heat) watched(owner *remote) *watch {
	for {
		w := h.watch.Load()
		if w != nil && w.owner == owner {
			return w
		}
		h.watch.CompareAndSwap(w, &watch{owner: owner})
	}
}

// older reports whether a write after the given sequence is known, or may be.
func (h *heat) older(r route, v *view, key string, sequence int64) bool {
	if sequence < v.base {
		return true
	}
	w := h.watch.Load()
	if w == nil || w.owner != r.remote || w.since.Load() == 0 || sequence < w.since.Load() {
		return v.stripe(key).Load() > sequence
	}
	return w.wrote.Load() > sequence
}
