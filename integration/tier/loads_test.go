package tier

import (
	"context"
	"testing"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// TestUnreadableLive: a value that a process cannot read is loaded once, and
// replaced, unless it was written meanwhile.
func TestUnreadableLive(t *testing.T) {
	eachClient(t, func(t *testing.T, c client) {
		nodes := servers(t, 1, harness.Options{})
		a, b := open[int](t, c, nodes, nil), open[int](t, c, nodes, &tiercache.Options{LocalBytes: -1})
		synced(t, a)
		spoil := func(key string) {
			mustSet(t, b, key, 1)
			_, err := nodes[0].Do(t.Context(), "SETRANGE", "tc:"+key, "36", "\x63")
			ok(t, err)
			within(t, bound, "a has heard of it", func() bool { _, err := a.Get(t.Context(), key); return err != nil })
		}
		for _, key := range []string{"k", "written"} {
			spoil(key)
			loads := 0
			for range 3 {
				_, err := a.GetOrLoad(t.Context(), key, func(context.Context) (int, error) {
					loads++
					if key == "written" {
						mustSet(t, b, key, 3)
					}
					return 2, nil
				})
				ok(t, err)
			}
			if loads != 1 {
				t.Errorf("%s: got %d loads, want 1", key, loads)
			}
		}
		wantGet(t, b, "k", 2)
		wantGet(t, b, "written", 3)
	})
}
