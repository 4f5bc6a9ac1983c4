package tiercache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

func mustInvalidate[V any](t testing.TB, c *tiercache.Cache[V], tags ...string) {
	t.Helper()
	if err := c.InvalidateTag(context.Background(), tags...); err != nil {
		t.Fatal(err)
	}
}

func shards(n int) map[string]tiercache.Shard {
	list := map[string]tiercache.Shard{}
	for i := range n {
		list[fmt.Sprint("shard", i)] = memory.New(nil)
	}
	return list
}

// TestTags: a tag invalidated is seen by all processes, in both tiers, and makes no
// difference to other values.
func TestTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shards(3)
		a, b := open[int](t, s, nil), open[int](t, s, nil)
		noL1 := open[int](t, s, &tiercache.Options{LocalBytes: -1})
		synced(t, a, b, noL1)
		all := []*tiercache.Cache[int]{a, b, noL1}
		const keys = 60
		key := func(i int) string { return fmt.Sprint("k", i) }
		tagOf := func(i int) string { return fmt.Sprint("team:", i%3) }
		for i := range keys {
			mustSet(t, a, key(i), i, tiercache.Tags(tagOf(i), "all"))
			mustSet(t, a, "plain"+key(i), i)
		}
		synctest.Wait()
		for _, c := range all {
			for i := range keys {
				wantGet(t, c, key(i), i)
				wantGet(t, c, key(i), i)
			}
		}
		mustInvalidate(t, b, "team:1")
		synctest.Wait()
		for _, c := range all {
			for i := range keys {
				if tagOf(i) == "team:1" {
					wantNone(t, c, key(i))
				} else {
					wantGet(t, c, key(i), i)
				}
				wantGet(t, c, "plain"+key(i), i)
			}
		}
		// What is set after it survives, as does what it is set over.
		mustSet(t, b, key(1), 100, tiercache.Tags("team:1"))
		synctest.Wait()
		late := open[int](t, s, nil) // knows nothing of what was before
		synced(t, late)
		for _, c := range append(all, late) {
			wantGet(t, c, key(1), 100)
			wantNone(t, c, key(4))
		}
		if late.Stats().Voided == 0 {
			t.Error("a value that a shard still holds was no miss by its tags")
		}
		mustInvalidate(t, a, "all", "none has it", "all")
		synctest.Wait()
		for _, c := range append(all, late) {
			for i := range keys {
				if i != 1 {
					wantNone(t, c, key(i))
				}
			}
			wantGet(t, c, key(1), 100)
		}
		// Untagged, it is of no tag any more.
		mustSet(t, a, key(1), 101)
		mustInvalidate(t, a, "team:1")
		synctest.Wait()
		wantGet(t, b, key(1), 101)
	})
}

// TestTagRefused: what is no tag.
func TestTagRefused(t *testing.T) {
	c := open[int](t, one(memory.New(nil)), nil)
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, tags := range [][]string{{""}, {strings.Repeat("x", 256)}, many} {
		if err := c.Set(t.Context(), "k", 1, tiercache.Tags(tags...)); !errors.Is(err, tiercache.ErrTag) {
			t.Errorf("Set with %d tags: got %v, want ErrTag", len(tags), err)
		}
		if err := c.InvalidateTag(t.Context(), tags...); !errors.Is(err, tiercache.ErrTag) {
			t.Errorf("InvalidateTag of %d tags: got %v, want ErrTag", len(tags), err)
		}
		if _, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { return 1, nil }, tiercache.Tags(tags...)); !errors.Is(err, tiercache.ErrTag) {
			t.Errorf("GetOrLoad with %d tags: got %v, want ErrTag", len(tags), err)
		}
	}
	long := strings.Repeat("\x00\xff", 127)
	mustSet(t, c, "k", 1, tiercache.Tags(append(many[:31], long)...))
	wantGet(t, c, "k", 1)
	mustInvalidate(t, c, long)
	wantNone(t, c, "k")
}

// TestTagDuringLoad: an invalidation wins over a load that began before it, in the
// process that loads, in others, and for who asks meanwhile.
func TestTagDuringLoad(t *testing.T) {
	for name, absent := range map[string]bool{"a value": false, "nothing": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := shards(1)
				a, b := open[int](t, s, nil), open[int](t, s, nil)
				synced(t, a, b)
				for round, by := range []*tiercache.Cache[int]{a, b} {
					first := make(chan error, 1)
					go func() {
						v, err := a.GetOrLoad(context.Background(), "k", func(context.Context) (int, error) {
							time.Sleep(time.Second)
							if absent {
								return 0, tiercache.ErrNotFound
							}
							return 1, nil
						}, tiercache.Tags("t"))
						if absent && errors.Is(err, tiercache.ErrNotFound) {
							err = nil
						} else if err == nil && v != 1 {
							err = fmt.Errorf("got %d, want 1", v)
						}
						first <- err
					}()
					time.Sleep(500 * time.Millisecond)
					mustInvalidate(t, by, "t")
					synctest.Wait()
					v, err := a.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { return 2, nil }, tiercache.Tags("t"))
					if v != 2 || err != nil {
						t.Errorf("who asks after it: got %d, %v, want 2", v, err)
					}
					if err := <-first; err != nil {
						t.Error(err)
					}
					synctest.Wait()
					for i, c := range []*tiercache.Cache[int]{a, b} {
						if v, err := c.Get(t.Context(), "k"); err == nil && v != 2 || errors.Is(err, tiercache.ErrNotFound) && absent && a.Stats().RefusedFills == 0 {
							t.Errorf("round %d, cache %d: got %v, %v, want 2 or nothing", round, i, v, err)
						}
					}
					// The marker of the load that was refused is in nobody's way.
					v, err = b.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { return 3, nil }, tiercache.Tags("t"))
					if err != nil || v == 1 {
						t.Errorf("got %v, %v", v, err)
					}
					v, err = a.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { return 4, nil }, tiercache.Tags("t"))
					if err != nil || v == 4 {
						t.Errorf("what was loaded last is not there: got %v, %v", v, err)
					}
					mustInvalidate(t, a, "t")
					synctest.Wait()
				}
				if a.Stats().RefusedFills == 0 {
					t.Error("no fill was refused")
				}
			})
		})
	}
}

// TestTagKeyEvicted: without a tag's key all its values are misses, also if it was
// invalidated and made anew in between.
func TestTagKeyEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a := open[int](t, one(shard), nil)
		synced(t, a)
		mustSet(t, a, "old", 1, tiercache.Tags("t"))
		fresh := func() *tiercache.Cache[int] {
			c := open[int](t, one(shard), nil)
			synced(t, c)
			mustSet(t, c, "other", 1) // or what is there may be as young as the view
			return c
		}
		mustSet(t, a, "x", 1)
		b := fresh()
		wantGet(t, b, "old", 1)
		mustInvalidate(t, a, "t")
		do(t, shard, "DEL", "tc#tag:t")
		mustSet(t, a, "new", 2, tiercache.Tags("t"))
		b = fresh()
		wantNone(t, b, "old")
		wantGet(t, b, "new", 2)
		do(t, shard, "DEL", "tc#tag:t")
		b = fresh()
		wantNone(t, b, "new")
	})
}

// TestTagLives: a tag's key lives as long as the longest of its values.
func TestTagLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a := open[int](t, one(shard), nil)
		synced(t, a)
		mustSet(t, a, "long", 1, tiercache.Tags("t"), tiercache.TTL(time.Hour))
		mustSet(t, a, "short", 1, tiercache.Tags("t"), tiercache.TTL(time.Minute))
		time.Sleep(59 * time.Minute)
		b := open[int](t, one(shard), nil)
		synced(t, b)
		wantGet(t, b, "long", 1)
		mustInvalidate(t, a, "t")
		synctest.Wait()
		wantNone(t, b, "long")
		time.Sleep(2 * time.Minute)
		if v, err := shard.Do(t.Context(), []string{"EXISTS", "tc#tag:t"}); err != nil || v != int64(0) {
			t.Errorf("a tag without values: got %v, %v, want no key", v, err)
		}
	})
}

// TestTagNoticeLost: an invalidation of which the notice was lost is seen within the
// bound.
func TestTagNoticeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		a, b := open[int](t, one(shard), nil), open[int](t, one(network), nil)
		for i := range 20 {
			synced(t, a, b)
			mustSet(t, a, "k", i, tiercache.Tags("t"))
			synctest.Wait()
			wantGet(t, b, "k", i)
			network.swallow.Store(true)
			mustInvalidate(t, a, "t")
			synctest.Wait()
			network.swallow.Store(false)
			time.Sleep(bound)
			wantNone(t, b, "k")
		}
	})
}

// TestTagReadBeforeInvalidation: a value that was read before it, and arrives after
// it, is not kept.
func TestTagReadBeforeInvalidation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		var slow atomic.Int64
		network := &faulty{Shard: shard, delay: func() time.Duration { return time.Duration(slow.Load()) }}
		a, b := open[int](t, one(shard), nil), open[int](t, one(network), nil)
		synced(t, a, b)
		mustSet(t, a, "k", 1, tiercache.Tags("t"))
		synctest.Wait()
		slow.Store(int64(10 * time.Millisecond))
		read := make(chan error)
		go func() { _, err := b.Get(context.Background(), "k"); read <- err }()
		time.Sleep(15 * time.Millisecond) // it is on its way back
		mustInvalidate(t, a, "t")
		synctest.Wait()
		if err := <-read; err != nil && !errors.Is(err, tiercache.ErrNotFound) {
			t.Error(err)
		}
		slow.Store(0)
		wantNone(t, b, "k")
	})
}

// TestTagsMany: SetMany, GetMany and its loads.
func TestTagsMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shards(3)
		a, b := open[int](t, s, nil), open[int](t, s, nil)
		synced(t, a, b)
		values := map[string]int{}
		var keys []string
		for i := range 1500 {
			values[fmt.Sprint("k", i)] = i
			keys = append(keys, fmt.Sprint("k", i))
		}
		if err := a.SetMany(t.Context(), values, tiercache.Tags("t")); err != nil {
			t.Fatal(err)
		}
		late := open[int](t, s, nil)
		synced(t, late)
		for i, c := range []*tiercache.Cache[int]{a, b, late} {
			if got, err := c.GetMany(t.Context(), keys, nil); err != nil || len(got) != len(keys) {
				t.Errorf("cache %d: got %d of %d, %v", i, len(got), len(keys), err)
			}
		}
		mustInvalidate(t, a, "t")
		synctest.Wait()
		late = open[int](t, s, nil)
		synced(t, late)
		for i, c := range []*tiercache.Cache[int]{a, b, late} {
			if got, err := c.GetMany(t.Context(), keys, nil); err != nil || len(got) != 0 {
				t.Errorf("cache %d, after the invalidation: got %d, %v", i, len(got), err)
			}
		}
		load := func(_ context.Context, keys []string) (map[string]int, error) {
			got := map[string]int{}
			for _, key := range keys {
				got[key] = -1
			}
			return got, nil
		}
		got, err := b.GetMany(t.Context(), keys, load, tiercache.Tags("t"))
		if err != nil || len(got) != len(keys) || got["k7"] != -1 {
			t.Errorf("loaded: got %d of %d, k7 is %d, %v", len(got), len(keys), got["k7"], err)
		}
		synctest.Wait()
		if got, err := a.GetMany(t.Context(), keys, nil); err != nil || len(got) != len(keys) {
			t.Errorf("what the other loaded: got %d of %d, %v", len(got), len(keys), err)
		}
		mustInvalidate(t, a, "t")
		synctest.Wait()
		if got, err := b.GetMany(t.Context(), keys, nil); err != nil || len(got) != 0 {
			t.Errorf("loaded values after the invalidation: got %d, %v", len(got), err)
		}
	})
}

// TestTagLease: a lease and its Fill, with tags.
func TestTagLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a := open[int](t, one(shard), nil)
		synced(t, a)
		f, err := a.GetOrLease(t.Context(), "k", tiercache.Tags("t"))
		if !errors.Is(err, tiercache.ErrNotFound) || f.Lease == "" {
			t.Fatalf("got %+v, %v", f, err)
		}
		if err := a.Fill(t.Context(), "k", f.Lease, 1, tiercache.Tags("t")); err != nil {
			t.Fatal(err)
		}
		wantGet(t, a, "k", 1)
		mustInvalidate(t, a, "t")
		f, err = a.GetOrLease(t.Context(), "k", tiercache.Tags("t"))
		if !errors.Is(err, tiercache.ErrNotFound) || f.Lease == "" {
			t.Fatalf("after the invalidation: got %+v, %v, want a lease", f, err)
		}
		mustInvalidate(t, a, "t")
		if err := a.Fill(t.Context(), "k", f.Lease, 2, tiercache.Tags("t")); !errors.Is(err, tiercache.ErrLease) {
			t.Errorf("a tag was invalidated meanwhile: got %v, want ErrLease", err)
		}
		wantNone(t, a, "k")
	})
}

// TestUntaggedPaysNothing counts commands.
func TestUntaggedPaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		opts := &tiercache.Options{LocalBytes: -1}
		a := open[int](t, one(network), opts)
		synced(t, a)
		count := func(what string, want int64, f func()) {
			t.Helper()
			f() // scripts are loaded
			synctest.Wait()
			before := network.commands.Load()
			f()
			if n := network.commands.Load() - before; n != want {
				t.Errorf("%s: got %d commands, want %d", what, n, want)
			}
		}
		count("a write", 1, func() { mustSet(t, a, "k", 1) })
		count("a read", 1, func() { wantGet(t, a, "k", 1) })
		count("a tagged write", 1, func() { mustSet(t, a, "k", 1, tiercache.Tags("t", "u")) })
		count("a tagged read", 1, func() { wantGet(t, a, "k", 1) })
		b := open[int](t, one(network), opts)
		synced(t, b)
		mustSet(t, a, "other", 1)
		c := open[int](t, one(network), opts)
		synced(t, c)
		count("a read of what is older than the view", 2, func() { wantGet(t, c, "k", 1) })
	})
}
