package tiercache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

var refreshOptions = tiercache.Options{TTL: 20 * time.Second, Jitter: -1, RefreshAhead: 5 * time.Second}

// TestRefreshAhead: who asks all the time never waits, and each life is one load of
// the fleet, whoever asks.
func TestRefreshAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		var caches []*tiercache.Cache[int]
		for range 8 {
			caches = append(caches, open[int](t, one(shard), &refreshOptions))
		}
		synced(t, caches...)
		var s source
		s.takes.Store(int64(time.Second))
		for _, c := range caches {
			wantLoad(t, c, &s, 0)
		}
		s.loads.Store(0)
		for i := range 30_000 { // 300 s: 15 to 20 lives, each ended 2.5 to 5 s early
			time.Sleep(10 * time.Millisecond)
			s.value.Store(int64(i))
			c, began := caches[i%len(caches)], time.Now()
			v, err := c.GetOrLoad(t.Context(), "k", s.load)
			if err != nil || time.Since(began) > 0 {
				t.Fatalf("after %d: got %v, %v after %v", i, v, err, time.Since(began))
			}
			if age := i - int(v); age > 100*(20+1)+1 { // a life, and a load
				t.Fatalf("a value %d ticks of 10 ms old", age)
			}
		}
		if n := s.loads.Load(); n < 15 || n > 20 {
			t.Errorf("got %d loads in 15 to 20 lives", n)
		}
		var refreshes uint64
		for _, c := range caches {
			refreshes += c.Stats().Refreshes
		}
		if int64(refreshes) != s.loads.Load() {
			t.Errorf("got %d refreshes for %d loads", refreshes, s.loads.Load())
		}
	})
}

// TestRefreshMany: GetMany refreshes, too, with one call for all that are due.
func TestRefreshMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards, _ := three()
		c := open[int](t, shards, &refreshOptions)
		synced(t, c)
		keys := manyKeys(100)
		var calls, round atomic.Int64
		ask := func() map[string]int {
			got, err := c.GetMany(t.Context(), keys, func(_ context.Context, keys []string) (map[string]int, error) {
				calls.Add(1)
				m := map[string]int{}
				for _, key := range keys {
					m[key] = int(round.Load())
				}
				return m, nil
			})
			if err != nil || len(got) != len(keys) {
				t.Fatalf("got %d values, %v", len(got), err)
			}
			return got
		}
		ask()
		round.Store(1)
		time.Sleep(18 * time.Second)
		ask()
		synctest.Wait()
		for key, v := range ask() {
			if v != 1 {
				t.Errorf("%s: got %d, want the refreshed 1", key, v)
			}
		}
		if n := calls.Load(); n != 2 {
			t.Errorf("got %d calls, want 2", n)
		}
	})
}

// TestRefreshRemoved: what is written while a refresh is under way stays, and a
// Delete does, in each process and on the shard.
func TestRefreshRemoved(t *testing.T) {
	for _, here := range []bool{false, true} {
		for _, set := range []bool{false, true} {
			t.Run(fmt.Sprintf("here %v, set %v", here, set), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shard := memory.New(nil)
					a, b := open[int](t, one(shard), &refreshOptions), open[int](t, one(shard), nil)
					synced(t, a, b)
					var s source
					s.value.Store(1)
					wantLoad(t, a, &s, 1)
					time.Sleep(18 * time.Second)
					s.takes.Store(int64(time.Second))
					wantLoad(t, a, &s, 1) // and begins to refresh it
					synctest.Wait()
					if n := s.loads.Load(); n != 2 {
						t.Fatalf("got %d loads, want a second one under way", n)
					}
					writer := b
					if here {
						writer = a
					}
					if set {
						mustSet(t, writer, "k", 7)
					} else if err := writer.Delete(t.Context(), "k"); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Second)
					for _, c := range []*tiercache.Cache[int]{a, b} {
						if set {
							wantGet(t, c, "k", 7)
						} else {
							wantNone(t, c, "k")
						}
					}
					if n := a.Stats().RefusedFills; n != 1 {
						t.Errorf("got %d refused fills, want 1", n)
					}
				})
			})
		}
	}
}

// TestRefreshFails: a refresh that fails harms nobody, and is tried again.
func TestRefreshFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := refreshOptions
		opts.LoadTimeout = time.Second
		c := open[int](t, one(memory.New(nil)), &opts)
		synced(t, c)
		var s source
		wantLoad(t, c, &s, 0)
		time.Sleep(18 * time.Second)
		s.down.Store(true)
		s.value.Store(1)
		wantLoad(t, c, &s, 0)
		synctest.Wait()
		wantLoad(t, c, &s, 0)
		if n := s.loads.Load(); n != 2 {
			t.Errorf("got %d loads, want 2", n)
		}
		s.down.Store(false)
		time.Sleep(1500 * time.Millisecond)
		wantLoad(t, c, &s, 0)
		synctest.Wait()
		wantLoad(t, c, &s, 1)
	})
}

// TestRefreshTakesOver: a process that was to refresh finds that another has.
func TestRefreshTakesOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[int](t, one(shard), &refreshOptions), open[int](t, one(shard), &refreshOptions)
		synced(t, a, b)
		var s source
		wantLoad(t, a, &s, 0)
		wantLoad(t, b, &s, 0)
		time.Sleep(18 * time.Second)
		s.value.Store(1)
		wantLoad(t, a, &s, 0)
		synctest.Wait()
		wantLoad(t, b, &s, 0)
		synctest.Wait()
		wantLoad(t, b, &s, 1)
		if n := s.loads.Load(); n != 2 {
			t.Errorf("got %d loads, want 2", n)
		}
	})
}

// TestReload: a loader is told the value of before, and may keep it.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		opts := refreshOptions
		a, b := open[[]byte](t, one(shard), &opts), open[[]byte](t, one(shard), nil)
		synced(t, a, b)
		var told []string
		ask := func(answer string, err error) ([]byte, error) {
			return a.GetOrReload(t.Context(), "k", func(_ context.Context, old []byte, ok bool) ([]byte, error) {
				told = append(told, fmt.Sprintf("%s %v", old, ok))
				for i := range old {
					old[i] = 'X'
				}
				return []byte(answer), err
			})
		}
		check := func(v []byte, err error, want string) {
			t.Helper()
			if err != nil || string(v) != want {
				t.Fatalf("got %q, %v, want %q", v, err, want)
			}
			v[0] = 'Y'
		}
		if _, err := ask("", tiercache.ErrNotModified); err == nil {
			t.Error("not modified, without a value: no error")
		}
		v, err := ask("one", nil)
		check(v, err, "one")
		time.Sleep(21 * time.Second)
		v, err = ask("", fmt.Errorf("304: %w", tiercache.ErrNotModified))
		check(v, err, "one")
		v, err = b.Get(t.Context(), "k")
		check(v, err, "one")
		time.Sleep(18 * time.Second)
		v, err = ask("", tiercache.ErrNotModified) // ahead of the end
		check(v, err, "one")
		synctest.Wait()
		time.Sleep(10 * time.Second)
		v, err = b.Get(t.Context(), "k") // which has a new life
		check(v, err, "one")
		time.Sleep(11 * time.Second)
		v, err = ask("two", nil)
		check(v, err, "two")
		want := []string{" false", " false", "one true", "one true", "one true"}
		if fmt.Sprint(told) != fmt.Sprint(want) {
			t.Errorf("the loader was told %q, want %q", told, want)
		}
	})
}
