package tiercache_test

import (
	"testing"

	"github.com/maypok86/otter/v2"

	"github.com/shardkit/shardkit/tiercache/memory"
)

var sink string

func BenchmarkLocalHit(b *testing.B) {
	value := string(make([]byte, 64))
	b.Run("otter", func(b *testing.B) {
		o := otter.Must(&otter.Options[string, string]{MaximumSize: 10_000})
		o.Set("key:42", value)
		b.ReportAllocs()
		for b.Loop() {
			sink, _ = o.GetIfPresent("key:42")
		}
	})
	b.Run("tiercache", func(b *testing.B) {
		c := open[string](b, one(memory.New(nil)), nil)
		synced(b, c)
		mustSet(b, c, "key:42", value)
		ctx := b.Context()
		b.ReportAllocs()
		for b.Loop() {
			sink, _ = c.Get(ctx, "key:42")
		}
		if c.Stats().ShardHits > 0 {
			b.Fatal("not all from L1")
		}
	})
}
