package tiercache_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

// TestDeletedAsItIsInherited: a key that has moved to a new shard is deleted while another
// process asks for it, who has what the shard before holds stored on the new one: each of
// them between any two commands of the other. Nothing is there in the end.
func TestDeletedAsItIsInherited(t *testing.T) {
	for name, erase := range map[string]func(ctx context.Context, c *tiercache.Cache[int], key string) error{
		"delete": func(ctx context.Context, c *tiercache.Cache[int], key string) error { return c.Delete(ctx, key) },
		"delete prefix": func(ctx context.Context, c *tiercache.Cache[int], key string) error {
			_, err := c.DeletePrefix(ctx, key)
			return err
		},
	} {
		for _, deleterFirst := range []bool{true, false} {
			who := map[bool]string{true: "read meanwhile", false: "deleted meanwhile"}[deleterFirst]
			t.Run(name+"/"+who, func(t *testing.T) {
				step, inherited := int64(0), uint64(0)
				for more := true; more; step++ {
					synctest.Test(t, func(t *testing.T) {
						shelves := newShelves(3)
						waysA, waysB := shelves.networks(), shelves.networks()
						for _, before := range []string{"a", "b"} { // so that the new shard is done with first
							waysA[before].delay = func() time.Duration { return time.Millisecond }
						}
						a, b := open[int](t, pick(waysA, "a", "b"), nil), open[int](t, pick(waysB, "a", "b"), nil)
						synced(t, a, b)
						key := movedTo(t, a, "c")
						mustSet(t, a, key, 1)
						for c, ways := range map[*tiercache.Cache[int]]networks{a: waysA, b: waysB} {
							if err := c.AddShard(t.Context(), "c", ways["c"]); err != nil {
								t.Fatal(err)
							}
						}
						synced(t, a, b)
						deletes := func() {
							if err := erase(t.Context(), a, key); err != nil {
								t.Error(err)
							}
						}
						reads := func() {
							if _, err := b.Get(t.Context(), key); err != nil && !errors.Is(err, tiercache.ErrNotFound) {
								t.Error(err)
							}
						}
						first, second, ways := deletes, reads, waysA
						if !deleterFirst {
							first, second, ways = reads, deletes, waysB
						}
						var steps atomic.Int64
						var over atomic.Bool
						done := func() {
							if !over.Load() && steps.Add(1) == step+1 {
								second()
							}
						}
						for _, way := range ways {
							way.done.Store(&done)
						}
						first()
						over.Store(true)
						more = steps.Load() > step
						inherited += b.Stats().Inherited
						time.Sleep(bound)
						for who, c := range map[string]*tiercache.Cache[int]{"who deleted it": a, "who asked for it": b} {
							if v, err := c.Get(t.Context(), key); more && err == nil {
								t.Errorf("step %d: %s gets %d", step, who, v)
							}
						}
					})
				}
				if step < 3 || !deleterFirst && inherited == 0 {
					t.Errorf("%d steps, and %d values of the shard before", step-1, inherited)
				}
			})
		}
	}
}

// TestNotInheritedOfOneThatIsOut: a key was deleted at the stand-in of a shard that takes no
// writes, but answers reads; then the key moves to a new shard. What the one that is out
// still holds is not had of it.
func TestNotInheritedOfOneThatIsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := newShelves(3).networks()
		c := open[int](t, pick(ways, "a", "b"), nil)
		synced(t, c)
		key := movedTo(t, c, "c")
		owner := c.Ring().Locate(key)
		mustSet(t, c, key, 1)
		readOnly := errors.New("READONLY You can't write against a read only replica.")
		ways[owner].answers.Store(&readOnly)
		within(t, bound, "the shard is out", func() bool {
			return slices.ContainsFunc(c.Health(), func(h tiercache.ShardHealth) bool { return h.State == tiercache.ShardOut })
		})
		if err := c.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if err := c.AddShard(t.Context(), "c", ways["c"]); err != nil {
			t.Fatal(err)
		}
		if got := c.Ring().Locate(key); got != "c" {
			t.Fatalf("%s is on %s, want c", key, got)
		}
		wantNone(t, c, key)
		if s := c.Stats(); s.Inherited != 0 {
			t.Errorf("%d values were had of the shard that is out", s.Inherited)
		}
	})
}
