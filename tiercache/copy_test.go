package tiercache_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// shelves are n shards, each behind a network of its own for every cache.
type shelves []*memory.Shard

func newShelves(n int) shelves {
	s := make(shelves, n)
	for i := range s {
		s[i] = memory.New(nil)
	}
	return s
}

// networks are ways to the shards, by their names: a, b, c...
type networks map[string]*faulty

func (s shelves) networks() networks {
	n := networks{}
	for i, shard := range s {
		n[fmt.Sprintf("%c", 'a'+i)] = &faulty{Shard: shard}
	}
	return n
}

func (n networks) shards() map[string]tiercache.Shard {
	shards := map[string]tiercache.Shard{}
	for name, f := range n {
		shards[name] = f
	}
	return shards
}

func (n networks) each(f func(*faulty)) {
	for _, way := range n {
		f(way)
	}
}

// heat reads the key until copies of it are on their shards, and returns those and
// its owner.
func heat(t *testing.T, c *tiercache.Cache[int], key string, want int) (owner string, holders []string) {
	t.Helper()
	for range 200 {
		wantGet(t, c, key, want)
	}
	synctest.Wait()
	before := c.Stats().CopyHits
	for range 30 {
		wantGet(t, c, key, want)
	}
	if got := c.Stats().CopyHits - before; got != 20 {
		t.Fatalf("%d of 30 reads were answered from copies, want 20", got)
	}
	walk := c.HotKeys()[0].Shards
	return walk[0], walk[1:]
}

// withoutL1 has every read ask a shard.
var withoutL1 = &tiercache.Options{LocalBytes: -1}

// TestSpread: a key that is only read is promoted, and read in turn from its owner and
// the next shards of its own walk.
func TestSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ways := newShelves(5).networks()
		c := open[int](t, ways.shards(), withoutL1)
		synced(t, c)
		mustSet(t, c, "k", 1)
		owner, holders := heat(t, c, "k", 1)
		if want := c.Ring().LocateN("k", 3); !slices.Equal(append([]string{owner}, holders...), want) {
			t.Errorf("spread over %s and %v, want %v", owner, holders, want)
		}
		before := map[string]int64{}
		for name, way := range ways {
			before[name] = way.commands.Load()
		}
		const reads = 3000
		for range reads {
			wantGet(t, c, "k", 1)
		}
		for name, way := range ways {
			want := int64(0)
			if name == owner || slices.Contains(holders, name) {
				want = reads / 3
			}
			if got := way.commands.Load() - before[name]; got != want {
				t.Errorf("%s had %d commands, want %d", name, got, want)
			}
		}
	})
}

// TestSpreadOfMany: so is a key that is only read together with others, or for its lease.
func TestSpreadOfMany(t *testing.T) {
	for name, get := range map[string]func(t *testing.T, c *tiercache.Cache[int]){
		"GetMany": func(t *testing.T, c *tiercache.Cache[int]) {
			got, err := c.GetMany(t.Context(), []string{"j", "k", "l", "none"}, nil)
			if want := map[string]int{"j": 1, "k": 2, "l": 3}; err != nil || !maps.Equal(got, want) {
				t.Fatalf("got %v, %v, want %v", got, err, want)
			}
		},
		"GetOrLease": func(t *testing.T, c *tiercache.Cache[int]) {
			for key, want := range map[string]int{"j": 1, "k": 2, "l": 3} {
				got, err := c.GetOrLease(t.Context(), key)
				if err != nil || got.Value != want || got.Left > time.Minute || got.Left < time.Second {
					t.Fatalf("%s: got %v, %v, want %d", key, got, err, want)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := open[int](t, newShelves(3).networks().shards(), withoutL1)
				synced(t, c)
				if err := c.SetMany(t.Context(), map[string]int{"j": 1, "k": 2, "l": 3}, tiercache.TTL(time.Minute)); err != nil {
					t.Fatal(err)
				}
				for range 300 {
					get(t, c)
				}
				synctest.Wait()
				before := c.Stats()
				for range 30 {
					get(t, c)
				}
				after := c.Stats()
				if got := after.CopyHits - before.CopyHits; got != 60 {
					t.Errorf("%d of 90 reads were answered from copies, want 60", got)
				}
				if got := after.ShardHits - before.ShardHits; got != 90 {
					t.Errorf("%d reads were answered from shards, want 90", got)
				}
			})
		})
	}
}

// TestSpreadStays: copies are made anew before they end, by one of the processes that
// read the key, so hardly a read has to go on to the owner.
func TestSpreadStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shelves := newShelves(3)
		a, b := open[int](t, shelves.networks().shards(), withoutL1), open[int](t, shelves.networks().shards(), withoutL1)
		synced(t, a, b)
		mustSet(t, a, "k", 1, tiercache.TTL(time.Hour))
		heat(t, a, "k", 1)
		heat(t, b, "k", 1)
		before := a.Stats()
		const reads = 6000
		for range reads {
			wantGet(t, a, "k", 1)
			wantGet(t, b, "k", 1)
			time.Sleep(5 * time.Millisecond)
		}
		after := a.Stats()
		if got := after.CopyHits - before.CopyHits; got != reads*2/3 {
			t.Errorf("%d of %d reads were answered from copies, want two thirds", got, reads)
		}
		// 30 s: once a second, by one of the two.
		if got := after.Promotions + b.Stats().Promotions - before.Promotions; got < 25 || got > 40 {
			t.Errorf("copies were made %d times in 30 s, want about 30", got)
		}
	})
}

// TestRewritten: when a write returns, no process reads what was there before, though it
// has not heard of the write.
func TestRewritten(t *testing.T) {
	for _, what := range []string{"Set", "SetMany", "Delete", "DeleteMany"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shelves := newShelves(4)
				ways := shelves.networks()
				a, b := open[int](t, shelves.networks().shards(), withoutL1), open[int](t, ways.shards(), withoutL1)
				synced(t, a, b)
				mustSet(t, a, "k", 1)
				heat(t, b, "k", 1)
				ways.each(func(f *faulty) { f.late = func() time.Duration { return time.Second / 2 } })
				var err error
				switch what {
				case "Set":
					err = a.Set(t.Context(), "k", 2)
				case "SetMany":
					err = a.SetMany(t.Context(), map[string]int{"j": 1, "k": 2, "l": 1})
				case "Delete":
					err = a.Delete(t.Context(), "k")
				case "DeleteMany":
					err = a.DeleteMany(t.Context(), "j", "k", "l")
				}
				if err != nil {
					t.Fatal(err)
				}
				before := b.Stats().CopyHits
				for range 30 {
					if what[0] == 'S' {
						wantGet(t, b, "k", 2)
					} else {
						wantNone(t, b, "k")
					}
				}
				if got := b.Stats().CopyHits - before; what[0] == 'S' && got != 20 {
					t.Errorf("%d of 30 reads after the write were answered from copies, want 20", got)
				}
			})
		})
	}
}

// TestFrozenHolders: a writer cannot reach the copies, which come back: who has heard of the
// write does not read them.
func TestFrozenHolders(t *testing.T) {
	withAndWithout(t, tiercache.Mechanisms{Copies: true}, func(t *testing.T, off tiercache.Mechanisms) bool {
		shelves := newShelves(4)
		writer := shelves.networks()
		a, b := open[int](t, writer.shards(), withoutL1), openWithout[int](t, shelves.networks().shards(), withoutL1, off)
		synced(t, a, b)
		mustSet(t, a, "k", 1)
		_, holders := heat(t, b, "k", 1)
		for _, name := range holders {
			writer[name].cut.Store(true)
		}
		began := time.Now()
		mustSet(t, a, "k", 2)
		if took := time.Since(began); took > time.Second/2 {
			t.Errorf("the write took %v", took)
		}
		synctest.Wait()
		for range 30 {
			if reads(t, b, "k", 1) {
				return true
			}
		}
		return false
	})
}

// TestCopyBound: even who hears of nothing reads no copy longer than two heartbeats after the
// write, which could not reach it, nor one that was sent then and came late.
func TestCopyBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := 0
		for i := range 20 {
			shelves := newShelves(3)
			writer, reader := shelves.networks(), shelves.networks()
			reader.each(func(f *faulty) { f.delay = upTo(uint64(i), 20*time.Millisecond) })
			a, err := tiercache.New[int](writer.shards(), withoutL1)
			if err != nil {
				t.Fatal(err)
			}
			b, err := tiercache.New[int](reader.shards(), withoutL1)
			if err != nil {
				t.Fatal(err)
			}
			synced(t, a, b)
			mustSet(t, a, "k", 1)
			for range 300 {
				wantGet(t, b, "k", 1)
			}
			owner := b.HotKeys()[0].Shards[0]
			for _, name := range b.HotKeys()[0].Shards[1:] {
				writer[name].cut.Store(true)
			}
			time.Sleep(time.Duration(i) * 106 * time.Millisecond)
			reader[owner].swallow.Store(true)
			mustSet(t, a, "k", 2)
			written := time.Now()
			for time.Since(written) < 2*bound {
				began := time.Now()
				if got, err := b.Get(t.Context(), "k"); err != nil {
					t.Fatal(err)
				} else if got != 2 {
					if old++; began.Sub(written) >= bound {
						t.Fatalf("round %d: read %d %v after it was overwritten", i, got, began.Sub(written))
					}
				}
			}
			a.Close()
			b.Close()
		}
		if old == 0 {
			t.Error("no old copy was read: the test does not see what ends them")
		}
	})
}

// TestCopiesOfMany: with 20 shards the copies of keys are spread over all of them.
func TestCopiesOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys = 400
		c := open[int](t, newShelves(20).networks().shards(), &tiercache.Options{LocalBytes: -1, HotReads: 4})
		synced(t, c)
		for i := range keys {
			key := fmt.Sprint("key", i)
			mustSet(t, c, key, i)
			for range 5 {
				wantGet(t, c, key, i)
			}
		}
		copies := map[string]int{}
		for _, k := range c.HotKeys() {
			for _, name := range k.Shards[1:] {
				copies[name]++
			}
		}
		most, sum := 0, 0
		for _, n := range copies {
			most, sum = max(most, n), sum+n
		}
		t.Logf("%d copies on %d shards, %d on the fullest", sum, len(copies), most)
		// The names are fixed, so the shares are no chance. That some keys are not among the
		// hot ones is: a few hundred of them may want the same place in the sketch.
		if sum < 2*keys*9/10 || len(copies) != 20 || most > 60 {
			t.Errorf("got %d copies on %d shards, %d on one; want %d on 20, about %d on each", sum, len(copies), most, 2*keys, 2*keys/20)
		}
	})
}
