package tier

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// TestDeletePrefixLive: a prefix is cleared on three servers, in L1 too, and nothing else; what is set after it
// survives.
func TestDeletePrefixLive(t *testing.T) {
	t.Parallel()
	keys := 2_000
	if long() {
		keys = 50_000
	}
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		nodes := servers(t, 3, harness.Options{})
		const patience = 10 * time.Second // the machine may be busy
		a, b := open[int](t, c, nodes, &tiercache.Options{Timeout: patience}), open[int](t, c, nodes, &tiercache.Options{Timeout: patience, LocalBytes: -1})
		other := open[int](t, c, nodes, &tiercache.Options{Namespace: "other"})
		synced(t, a, b, other)
		prefixes := []string{"user[1]*?:", "user[1]:", ""}
		for _, prefix := range prefixes {
			batch := map[string]int{}
			for i := range keys {
				batch[fmt.Sprint(prefix, "k", i)] = i
			}
			ok(t, a.SetMany(t.Context(), batch))
		}
		mustSet(t, other, "user[1]*?:k0", 1)
		is := func(c *tiercache.Cache[int], prefix string, there bool) bool {
			for i := 0; i < keys; i += keys / 200 {
				v, err := c.Get(t.Context(), fmt.Sprint(prefix, "k", i))
				if there && (err != nil || v != i) || !there && !errors.Is(err, tiercache.ErrNotFound) {
					return false
				}
			}
			return true
		}
		for _, prefix := range prefixes {
			if !is(a, prefix, true) || !is(b, prefix, true) {
				t.Fatalf("%q: not all values are there", prefix)
			}
		}
		start := time.Now()
		deleted, err := b.DeletePrefix(t.Context(), prefixes[0])
		t.Logf("%d of %d keys deleted in %v", deleted, 3*keys, time.Since(start))
		if err != nil || deleted != keys {
			t.Errorf("got %d, %v, want %d", deleted, err, keys)
		}
		if !is(b, prefixes[0], false) {
			t.Error("values are there that b deleted")
		}
		within(t, bound, "a has heard of it", func() bool { return is(a, prefixes[0], false) })
		for _, prefix := range prefixes[1:] {
			if !is(a, prefix, true) || !is(b, prefix, true) {
				t.Errorf("%q: values are gone that nobody deleted", prefix)
			}
		}
		wantGet(t, other, "user[1]*?:k0", 1)
		mustSet(t, b, prefixes[0]+"k0", 0)
		wantGet(t, a, prefixes[0]+"k0", 0)
	})
}

// TestDeletePrefixWhileCutOff: a shard that is frozen meanwhile, known to be out or not, is named by the error, and
// nothing of the others survives. Called again when it is back, nothing survives there either.
func TestDeletePrefixWhileCutOff(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		for name, known := range map[string]bool{"at once": false, "when it is out": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tr := newTrial(t, c, harness.Options{})
				there, away := tr.key(1, 2), tr.key(0, 1) // both begin with k
				mustSet(t, tr.caches[0], there, 1)
				mustSet(t, tr.caches[0], away, 1)
				tr.freeze(0)
				if known {
					tr.out(0)
					mustSet(t, tr.caches[0], away, 2) // where 1 stands in for 0
				}
				_, err := tr.caches[1].DeletePrefix(t.Context(), "k")
				var failed *tiercache.ShardError
				if !errors.As(err, &failed) || failed.Shard != tr.nodes[0].Name() {
					t.Errorf("got %v, want a *ShardError of the frozen shard", err)
				}
				within(t, bound, "nothing is left on the others", func() bool {
					for _, c := range tr.caches {
						if _, err := c.Get(t.Context(), there); !errors.Is(err, tiercache.ErrNotFound) {
							return false
						}
						if _, err := c.Get(t.Context(), away); known && !errors.Is(err, tiercache.ErrNotFound) {
							return false
						}
					}
					return true
				})
				tr.out(0)
				tr.thaw(0)
				tr.out()
				if known { // what was overwritten during the outage is gone in any case
					tr.never(away, 1, 2)
				}
				_, err = tr.caches[1].DeletePrefix(t.Context(), "k")
				ok(t, err)
				within(t, bound, "nothing is left", func() bool {
					for _, c := range tr.caches {
						for _, key := range []string{there, away} {
							if _, err := c.Get(t.Context(), key); !errors.Is(err, tiercache.ErrNotFound) {
								return false
							}
						}
					}
					return true
				})
				for _, key := range []string{there, away} {
					mustSet(t, tr.caches[0], key, 3)
					within(t, bound, "what is set after it is there", func() bool { v, err := tr.caches[1].Get(t.Context(), key); return err == nil && v == 3 })
				}
			})
		}
	})
}
