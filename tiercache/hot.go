package tiercache

import (
	"time"

	"github.com/shardkit/shardkit/tiercache/internal/hot"
)

// hotWindow is the time within which reads make a key hot.
const hotWindow = 5 * time.Second

// HotKey is a key that this process reads often from shards: what L1 answers is
// no load on any.
type HotKey struct {
	Key   string
	Reads int // within the last 5 s, about; counted to 262143
}

// HotKeys returns the hot keys, most read first, at most 1024. There are none
// with Options.HotReads below zero.
func (c *Cache[V]) HotKeys() []HotKey {
	if c.hot == nil {
		return nil
	}
	keys, reads := c.hot.Top(now())
	found := make([]HotKey, len(keys))
	for i, k := range keys {
		found[i] = HotKey{Key: k.Name, Reads: reads[i]}
	}
	return found
}

// heat is what a cache keeps of a hot key.
type heat struct{}

func newHot(opts *Options) *hot.Sketch[heat] {
	if opts.HotReads < 0 {
		return nil
	}
	return hot.New[heat](opts.HotReads, hotWindow)
}

// counted counts a read of key from a shard.
func (c *Cache[V]) counted(key string) {
	if c.hot != nil {
		c.hot.Read(key, now())
	}
}
