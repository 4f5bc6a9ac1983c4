package tiercache_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

func pick(n networks, names ...string) map[string]tiercache.Shard {
	shards := map[string]tiercache.Shard{}
	for _, name := range names {
		shards[name] = n[name]
	}
	return shards
}

// movedTo is a key that shard name gets when it is added to c's.
func movedTo(t *testing.T, c *tiercache.Cache[int], name string) string {
	t.Helper()
	after, err := c.Ring().With(ring.Node{Name: name, Weight: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		if key := fmt.Sprint("key", i); after.Locate(key) == name {
			return key
		}
	}
}

// TestAddShard: a key that moves is found where it was, then where it is; a process that
// has not been told writes and reads as the others do.
func TestAddShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelves := newShelves(3)
		waysA, waysB := shelves.networks(), shelves.networks()
		a, b := open[int](t, pick(waysA, "a", "b"), nil), open[int](t, pick(waysB, "a", "b"), nil)
		synced(t, a, b)
		key := movedTo(t, a, "c")
		mustSet(t, a, key, 1)
		wantGet(t, b, key, 1)
		if err := a.AddShard(t.Context(), "c", waysA["c"]); err != nil {
			t.Fatal(err)
		}
		if got := a.Ring().Locate(key); got != "c" {
			t.Fatalf("%s is on %s, want c", key, got)
		}
		before := a.Stats()
		wantGet(t, a, key, 1)
		if s := a.Stats(); s.Inherited != before.Inherited+1 {
			t.Errorf("%d values were had of the shard before, want 1", s.Inherited-before.Inherited)
		}
		mustSet(t, a, key, 2)
		synctest.Wait()
		wantNone(t, b, key) // by the notice of the shard before; c is out for it
		time.Sleep(10 * time.Millisecond)
		within(t, bound, "b reads at the stand-in what it wrote there", func() bool { // a miss, if the outage was declared anew in between
			mustSet(t, b, key, 3)
			v, err := b.Get(t.Context(), key)
			return err == nil && v == 3
		})
		time.Sleep(bound)
		if got := b.Members(); !slices.Equal(got.Missing, []string{"c"}) || len(got.Others) != 1 || got.List == 0 {
			t.Errorf("b: got %+v, want c missing, and one other fingerprint", got)
		}
		wantNone(t, a, key) // by the note that b left for c
		if err := b.AddShard(t.Context(), "c", waysB["c"]); err != nil {
			t.Fatal(err)
		}
		within(t, 10*time.Second, "b uses c", func() bool {
			for _, h := range b.Health() {
				if h.State != tiercache.ShardServing {
					return false
				}
			}
			return true
		})
		time.Sleep(2 * bound)
		for name, c := range map[string]*tiercache.Cache[int]{"a": a, "b": b} {
			if got := c.Members(); len(got.Missing)+len(got.Others) > 0 || got.List != a.Members().List || !slices.Equal(got.Shards, []string{"a", "b", "c"}) {
				t.Errorf("%s: got %+v, want three shards, and no difference", name, got)
			}
		}
		wantNone(t, b, key)
		mustSet(t, b, key, 4)
		synctest.Wait()
		wantGet(t, a, key, 4)
		if err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantNone(t, a, key)
	})
}

// TestRemoveShard: and added back with what it held, of which nothing is read.
func TestRemoveShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelves := newShelves(3)
		waysA, waysB := shelves.networks(), shelves.networks()
		a, b := open[int](t, waysA.shards(), nil), open[int](t, waysB.shards(), nil)
		synced(t, a, b)
		var keys []string
		for i := 0; len(keys) < 20; i++ {
			if key := fmt.Sprint("key", i); a.Ring().Locate(key) == "c" {
				keys = append(keys, key)
				mustSet(t, a, key, 1, tiercache.TTL(time.Hour))
			}
		}
		if err := a.RemoveShard(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys[:10] {
			wantGet(t, a, key, 1) // handed over
		}
		time.Sleep(bound)
		if err := b.RemoveShard(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		for i, key := range keys {
			if i >= 10 {
				wantNone(t, b, key) // nobody asked in time
			}
			mustSet(t, b, key, 2, tiercache.TTL(time.Minute))
		}
		time.Sleep(2 * time.Minute) // it ends
		for _, c := range []struct {
			*tiercache.Cache[int]
			networks
		}{{a, waysA}, {b, waysB}} {
			if err := c.AddShard(t.Context(), "c", c.networks["c"]); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			for _, key := range keys {
				wantNone(t, a, key)
				wantNone(t, b, key)
			}
			time.Sleep(bound)
		}
	})
}

// TestAddedAndRemoved: what a shard still holds of keys that moved away from it does not
// come back with them.
func TestAddedAndRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelves := newShelves(3)
		waysA, waysB, waysC := shelves.networks(), shelves.networks(), shelves.networks()
		a, b := open[int](t, pick(waysA, "a", "b"), nil), open[int](t, pick(waysB, "a", "b"), nil)
		synced(t, a, b)
		key := movedTo(t, a, "c")
		mustSet(t, a, key, 1, tiercache.TTL(24*time.Hour))
		for _, c := range []struct {
			*tiercache.Cache[int]
			networks
		}{{a, waysA}, {b, waysB}} {
			if err := c.AddShard(t.Context(), "c", c.networks["c"]); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute) // the handover is over
		if err := a.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if err := a.RemoveShard(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		fresh := open[int](t, pick(waysC, "a", "b"), nil) // which learns of no list before it asks
		for name, c := range map[string]*tiercache.Cache[int]{"a": a, "b": b, "a new process": fresh} {
			within(t, bound, name+" goes by the list", func() bool { return c.Members().List == a.Members().List })
			wantNone(t, c, key)
		}
		mustSet(t, b, key, 2)
		synctest.Wait()
		wantGet(t, a, key, 2)
	})
}

// TestHandoverWithoutBefore: a write that does not reach the shard that had its key ends the
// handover, for all.
func TestHandoverWithoutBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelves := newShelves(3)
		waysA, waysB := shelves.networks(), shelves.networks()
		opts := &tiercache.Options{LocalBytes: -1}
		a, b := open[int](t, waysA.shards(), opts), open[int](t, waysB.shards(), opts)
		synced(t, a, b)
		key := ""
		for i := 0; key == ""; i++ {
			if k := fmt.Sprint("key", i); a.Ring().Locate(k) == "c" {
				key = k
			}
		}
		mustSet(t, a, key, 1, tiercache.TTL(time.Hour))
		if err := a.RemoveShard(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(bound)
		waysA["c"].cut.Store(true)
		a.Delete(t.Context(), key)
		time.Sleep(bound)
		if got, err := b.Get(t.Context(), key); err == nil {
			t.Errorf("got %d of the shard that was removed, which was deleted", got)
		}
	})
}

// TestBothAdd: two processes add different shards at the same time.
func TestBothAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelves := newShelves(4)
		waysA, waysB := shelves.networks(), shelves.networks()
		a, b := open[int](t, pick(waysA, "a", "b"), nil), open[int](t, pick(waysB, "a", "b"), nil)
		synced(t, a, b)
		errs := make(chan error, 2)
		go func() { errs <- a.AddShard(context.Background(), "c", waysA["c"]) }()
		go func() { errs <- b.AddShard(context.Background(), "d", waysB["d"]) }()
		for range 2 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		time.Sleep(bound)
		for _, c := range []*tiercache.Cache[int]{a, b} {
			if got := c.Members().Shards; !slices.Equal(got, []string{"a", "b", "c", "d"}) {
				t.Errorf("got %v, want all four", got)
			}
		}
	})
}

// TestClearedAfterMembers: tags and prefixes are cleared on the shards of the latest list,
// by a process that has not heard of it too.
func TestClearedAfterMembers(t *testing.T) {
	for name, clear := range map[string]func(context.Context, *tiercache.Cache[int]) error{
		"tag": func(ctx context.Context, c *tiercache.Cache[int]) error { return c.InvalidateTag(ctx, "team") },
		"prefix": func(ctx context.Context, c *tiercache.Cache[int]) error {
			_, err := c.DeletePrefix(ctx, "key")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shelves := newShelves(3)
				waysA, waysB := shelves.networks(), shelves.networks()
				a, b := open[int](t, pick(waysA, "a", "b"), nil), open[int](t, pick(waysB, "a", "b", "c"), nil)
				synced(t, a)
				for i, c := range []*tiercache.Cache[int]{a, b} {
					if err := a.AddShard(t.Context(), "c", waysA["c"]); err != nil {
						t.Fatal(err)
					}
					for key := range 30 {
						mustSet(t, a, fmt.Sprint("key", key), key, tiercache.Tags("team"))
					}
					if err := clear(t.Context(), c); err != nil {
						t.Fatalf("by process %d: %v", i, err)
					}
					time.Sleep(bound)
					for key := range 30 {
						wantNone(t, a, fmt.Sprint("key", key))
						wantNone(t, b, fmt.Sprint("key", key))
					}
				}
			})
		})
	}
}

// TestAddRefused: a name that no ring takes, or no shard, changes nothing.
func TestAddRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelves := newShelves(2)
		ways := shelves.networks()
		a, other := open[int](t, pick(ways, "a"), nil), open[int](t, pick(ways, "b"), nil)
		synced(t, a, other)
		mustSet(t, other, "k", 1)
		before := a.Members()
		for name, shard := range map[string]tiercache.Shard{"": ways["b"], "b": nil} {
			if err := a.AddShard(t.Context(), name, shard); err == nil {
				t.Errorf("%q, %v was taken", name, shard)
			}
		}
		if got := a.Members(); !slices.Equal(got.Shards, before.Shards) || got.List != before.List || got.Given != before.Given {
			t.Errorf("got %+v, want %+v", got, before)
		}
		time.Sleep(bound)
		wantGet(t, other, "k", 1)
	})
}

// TestConfiguredDifferently: both sides say so within two heartbeats.
func TestConfiguredDifferently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelves := newShelves(3)
		events := make(chan tiercache.Event, 1000)
		on := func(e tiercache.Event) {
			if e.Kind == tiercache.EventDiffer {
				events <- e
			}
		}
		a := open[int](t, pick(shelves.networks(), "a", "b"), &tiercache.Options{OnEvent: on})
		synced(t, a)
		time.Sleep(time.Minute)
		if got := a.Members(); len(got.Others) != 0 {
			t.Fatalf("alone: got %+v", got)
		}
		b := open[int](t, shelves.networks().shards(), &tiercache.Options{OnEvent: on})
		time.Sleep(bound)
		if got := len(events); got < 2 {
			t.Errorf("got %d events, want one of each side", got)
		}
		ma, mb := a.Members(), b.Members()
		if !slices.Equal(ma.Others, []uint64{mb.Given}) || !slices.Equal(mb.Others, []uint64{ma.Given}) || ma.Given == mb.Given {
			t.Errorf("got %+v and %+v, want each to see the other", ma, mb)
		}
		b.Close()
		time.Sleep(2 * bound)
		if got := a.Members(); len(got.Others) != 0 {
			t.Errorf("after the other has left: got %+v", got)
		}
	})
}

func TestMembersRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open[int](t, one(memory.New(nil)), nil)
		if err := c.AddShard(t.Context(), "b", nil); err == nil {
			t.Error("a nil shard was added")
		}
		if err := c.RemoveShard(t.Context(), "a"); err == nil {
			t.Error("the last shard was removed")
		}
		if err := c.RemoveShard(t.Context(), "none"); err != nil {
			t.Errorf("removing what is not there: got %v", err)
		}
		c.Close()
		if err := c.AddShard(t.Context(), "b", memory.New(nil)); err != tiercache.ErrClosed {
			t.Errorf("after Close: got %v, want ErrClosed", err)
		}
	})
}

// TestMissesAfterAdd: what moves to a shard that is added is about its share, and is loaded
// once; with a handover hardly anything is.
func TestMissesAfterAdd(t *testing.T) {
	for _, c := range []struct {
		name     string
		handover time.Duration
		many     bool
	}{{"asking the shard before", 0, false}, {"without", -1, false}, {"many, asking the shard before", 0, true}, {"many, without", -1, true}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const keys, passes = 1000, 2
				ways := newShelves(4).networks()
				cache := open[int](t, pick(ways, "a", "b", "c"), &tiercache.Options{LocalBytes: -1, Handover: c.handover, HotReads: -1})
				synced(t, cache)
				pass := func() float64 {
					loads := 0
					if c.many {
						names := make([]string, keys)
						for i := range names {
							names[i] = fmt.Sprint("key", i)
						}
						for some := range slices.Chunk(names, 100) {
							_, err := cache.GetMany(t.Context(), some, func(_ context.Context, missing []string) (map[string]int, error) {
								loads += len(missing)
								values := map[string]int{}
								for _, name := range missing {
									values[name] = 1
								}
								return values, nil
							})
							if err != nil {
								t.Fatal(err)
							}
						}
						time.Sleep(time.Second)
						return 100 * float64(loads) / keys
					}
					for i := range keys {
						_, err := cache.GetOrLoad(t.Context(), fmt.Sprint("key", i), func(context.Context) (int, error) { loads++; return i, nil })
						if err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(time.Second)
					return 100 * float64(loads) / keys
				}
				pass()
				if err := cache.AddShard(t.Context(), "d", ways["d"]); err != nil {
					t.Fatal(err)
				}
				var shares []float64
				for range passes {
					shares = append(shares, pass())
				}
				t.Logf("keys loaded in each pass over %d after a fourth shard was added: %.1f %%", keys, shares)
				// 25 % move; the names are fixed, so this is no chance.
				if first := shares[0]; c.handover < 0 && (first < 20 || first > 30) || c.handover == 0 && first > 0 {
					t.Errorf("%.1f %% were loaded in the first pass", first)
				}
				if shares[1] > 0 {
					t.Errorf("%.1f %% were loaded in the second pass, want none", shares[1])
				}
			})
		})
	}
}

// TestRemovedWithNotes: a shard that is removed takes the notes with it that lie there for
// another one, which is out. When that is back, nobody reads there what was overwritten.
func TestRemovedWithNotes(t *testing.T) {
	for _, away := range []time.Duration{time.Second, 10 * time.Second} {
		t.Run(fmt.Sprint(away), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shelves := newShelves(3)
				waysA, waysB := shelves.networks(), shelves.networks()
				opts := &tiercache.Options{LocalBytes: -1}
				a, b := open[int](t, waysA.shards(), opts), open[int](t, waysB.shards(), opts)
				synced(t, a, b)
				walk, key := []string(nil), ""
				for i := 0; key == ""; i++ {
					if walk = a.Ring().LocateN(fmt.Sprint("key", i), 2); slices.Equal(walk, []string{"a", "b"}) {
						key = fmt.Sprint("key", i)
					}
				}
				mustSet(t, a, key, 1)
				time.Sleep(bound)
				waysA["a"].cut.Store(true)
				waysB["a"].cut.Store(true)
				time.Sleep(away)
				within(t, bound, "others stand in for the shard", func() bool { return a.Set(t.Context(), key, 2) == nil })
				if err := a.RemoveShard(t.Context(), "b"); err != nil {
					t.Fatal(err)
				}
				waysA["b"].cut.Store(true) // for good
				waysB["b"].cut.Store(true)
				time.Sleep(bound)
				waysA["a"].cut.Store(false)
				waysB["a"].cut.Store(false)
				within(t, bound, "the shard is used", func() bool {
					mustSet(t, a, "probe", 1)
					for _, c := range []*tiercache.Cache[int]{a, b} {
						if c.Health()[0].State != tiercache.ShardServing {
							return false
						}
					}
					return true
				})
				for _, c := range []*tiercache.Cache[int]{a, b} {
					wantNone(t, c, key)
				}
			})
		})
	}
}

// TestListsFromAfar: a process that was not given a shard of the list before takes on the
// lists that follow.
func TestListsFromAfar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelves := newShelves(4)
		ways := shelves.networks()
		a, b := open[int](t, pick(ways, "a", "b", "c"), nil), open[int](t, pick(shelves.networks(), "a", "b"), nil)
		synced(t, a, b)
		if err := a.RemoveShard(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(bound)
		if err := a.AddShard(t.Context(), "d", ways["d"]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(bound)
		if got := b.Members(); got.List != a.Members().List || !slices.Equal(got.Missing, []string{"d"}) {
			t.Errorf("got %+v, want the list of %+v, without d", got, a.Members())
		}
	})
}
