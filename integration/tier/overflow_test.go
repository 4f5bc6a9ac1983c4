package tier

import (
	"fmt"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// mostNotes is how many keys a shard notes for another, by decision 0006.
const mostNotes = 30_000

// TestNotesOverflow: more keys are deleted while their server is out than the other
// notes. Then everything that the server holds is a miss when it is back, whether
// its key was among them or not.
func TestNotesOverflow(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		nodes := servers(t, 2, harness.Options{})
		cache := open[int](t, c, nodes, &tiercache.Options{LocalBytes: -1})
		synced(t, cache)
		owner, other := nodes[0].Name(), nodes[1]
		var keys []string
		for i := 0; len(keys) < mostNotes+1500; i++ {
			if key := fmt.Sprint("k", i); cache.Ring().Locate(key) == owner {
				keys = append(keys, key)
			}
		}
		// Of these there are values from before: the first that are noted, some beyond
		// the limit, and some that nobody touches.
		first, rest := keys[:500], keys[500:mostNotes]
		beyond, alone := keys[mostNotes:mostNotes+1000], keys[mostNotes+1000:]
		values := map[string]int{}
		for _, list := range [][]string{first, beyond, alone} {
			for _, key := range list {
				values[key] = 1
			}
		}
		within(t, 30*time.Second, "all are set", func() bool { return cache.SetMany(t.Context(), values) == nil })

		ok(t, nodes[0].Freeze())
		out := func(is bool) {
			t.Helper()
			outFor(t, []*tiercache.Cache[int]{cache}, func(name string) bool { return is && name == owner })
		}
		out(true)
		for _, list := range [][]string{first, rest, beyond} {
			within(t, 30*time.Second, "all are deleted", func() bool { return cache.DeleteMany(t.Context(), list...) == nil })
		}
		if n, err := other.Do(t.Context(), "ZCARD", "tc#notes:"+owner); n != int64(mostNotes+1) || err != nil {
			t.Fatalf("got %v notes, %v, want %d and one for all keys", n, err, mostNotes)
		}
		ok(t, nodes[0].Thaw())
		out(false)

		for name, list := range map[string][]string{"noted": first, "beyond the limit": beyond, "not deleted": alone} {
			within(t, 30*time.Second, "all are read", func() bool {
				got, err := cache.GetMany(t.Context(), list, nil)
				if len(got) > 0 {
					t.Fatalf("%s: %d of %d values are there, want none", name, len(got), len(list))
				}
				return err == nil
			})
		}
		within(t, 10*time.Second, "the notes are gone", func() bool {
			n, err := other.Do(t.Context(), "EXISTS", "tc#notes:"+owner)
			return n == int64(0) && err == nil
		})
		mustSet(t, cache, alone[0], 2)
		wantGet(t, cache, alone[0], 2)
	})
}
