package tiercache_test

import (
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// TestHotKeys: what a shard is asked for counts, however it is asked; what L1
// answers does not.
func TestHotKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open[int](t, one(memory.New(nil)), nil)
		synced(t, c)
		mustSet(t, c, "local", 1)
		for range 500 {
			wantGet(t, c, "local", 1)
			wantNone(t, c, "read")
		}
		for range 60 {
			if _, err := c.GetMany(t.Context(), []string{"many", "read", "many"}, nil); err != nil {
				t.Fatal(err)
			}
			c.GetOrLease(t.Context(), "leased")
		}
		for range 40 {
			c.GetMany(t.Context(), []string{"many"}, nil)
			c.GetOrLease(t.Context(), "leased")
		}
		want := []tiercache.HotKey{{"read", 560, []string{"a"}}, {"leased", 100, []string{"a"}}, {"many", 100, []string{"a"}}}
		if got := c.HotKeys(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestHotKeysOff(t *testing.T) {
	c := open[int](t, one(memory.New(nil)), &tiercache.Options{HotReads: -1})
	for range 200 {
		wantNone(t, c, "k")
	}
	if got := c.HotKeys(); got != nil {
		t.Errorf("got %v, want none", got)
	}
}
