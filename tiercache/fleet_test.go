package tiercache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// fleet opens caches of as many processes, each with its own way to the shards.
func fleet(t *testing.T, n int, opts *tiercache.Options) (caches []*tiercache.Cache[int], networks []*faulty) {
	t.Helper()
	shard := memory.New(nil)
	for range n {
		f := &faulty{Shard: shard, delay: upTo(uint64(len(networks)), 2*time.Millisecond)}
		networks = append(networks, f)
		caches = append(caches, open[int](t, one(f), opts))
	}
	synced(t, caches...)
	return caches, networks
}

// ask has every cache load k at one time, and returns how long the slowest took.
func ask(t *testing.T, caches []*tiercache.Cache[int], load tiercache.Loader[int], check func(v int, err error)) time.Duration {
	t.Helper()
	began := time.Now()
	var wg sync.WaitGroup
	for _, c := range caches {
		for range 10 {
			wg.Go(func() { check(c.GetOrLoad(t.Context(), "k", load)) })
		}
	}
	wg.Wait()
	return time.Since(began)
}

var fleetOptions = tiercache.Options{FleetWait: time.Second}

// TestFleetLoadsOnce: eight processes that miss a key are one load.
func TestFleetLoadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caches, _ := fleet(t, 8, &fleetOptions)
		var s source
		s.value.Store(3)
		s.takes.Store(int64(500 * time.Millisecond))
		took := ask(t, caches, s.load, func(v int, err error) {
			if v != 3 || err != nil {
				t.Errorf("got %v, %v", v, err)
			}
		})
		var awaited uint64
		for _, c := range caches {
			awaited += c.Stats().Awaited
		}
		if n := s.loads.Load(); n != 1 || awaited != 7 || took > 700*time.Millisecond {
			t.Errorf("got %d loads, %d awaited, after %v; want 1 and 7 within 0.7 s", n, awaited, took)
		}
	})
}

// TestFleetLeaderGone: when the leader falls silent during its load, one of the
// others takes over after FleetWait.
func TestFleetLeaderGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caches, networks := fleet(t, 8, &fleetOptions)
		leading := make(chan struct{})
		hang := make(chan struct{})
		defer close(hang)
		go caches[0].GetOrLoad(context.Background(), "k", func(ctx context.Context) (int, error) {
			close(leading)
			<-hang
			return 1, nil
		})
		<-leading
		networks[0].cut.Store(true)
		var s source
		s.value.Store(2)
		s.takes.Store(int64(500 * time.Millisecond))
		took := ask(t, caches[1:], s.load, func(v int, err error) {
			if v != 2 || err != nil {
				t.Errorf("got %v, %v", v, err)
			}
		})
		if n := s.loads.Load(); n != 1 || took < 1500*time.Millisecond || took > 1900*time.Millisecond {
			t.Errorf("got %d loads after %v, want 1 after the second of waiting and the half of loading", n, took)
		}
	})
}

// TestFleetLeaderFails: when the leader's load fails, the next begins at once, and
// each process gets the error of its own loader.
func TestFleetLeaderFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caches, _ := fleet(t, 4, &fleetOptions)
		var running, most atomic.Int64
		took := ask(t, caches, func(context.Context) (int, error) {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(100 * time.Millisecond)
			running.Add(-1)
			return 0, errDown
		}, func(_ int, err error) {
			if !errors.Is(err, errDown) {
				t.Errorf("got %v, want the loader's error", err)
			}
		})
		if most.Load() != 1 || took > 900*time.Millisecond {
			t.Errorf("got %d loads at one time, all after %v; want one by one within 0.9 s", most.Load(), took)
		}
	})
}

// TestFleetAlwaysEnds: who waits gets the value of a loader of his own in the end,
// whatever becomes of others.
func TestFleetAlwaysEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		opts := tiercache.Options{FleetWait: time.Second, LoadTimeout: 5 * time.Second}
		caches := []*tiercache.Cache[int]{open[int](t, one(shard), &opts)}
		synced(t, caches...)
		// Markers of others stand all the time: each is taken away and left anew, so that
		// no wait for one is ever over.
		ctx, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		defer others.Wait()
		defer stop()
		other := open[int](t, one(shard), nil)
		others.Go(func() {
			for ctx.Err() == nil {
				shard.Do(ctx, []string{"DEL", "tc:k"})
				other.GetOrLease(ctx, "k")
				time.Sleep(900 * time.Microsecond)
			}
		})
		time.Sleep(10 * time.Millisecond)
		var s source
		s.value.Store(4)
		took := ask(t, caches, s.load, func(v int, err error) {
			if v != 4 || err != nil {
				t.Errorf("got %v, %v", v, err)
			}
		})
		if took > opts.LoadTimeout {
			t.Errorf("took %v, want %v at most", took, opts.LoadTimeout)
		}
	})
}

// TestFleetShardGone: a shard that falls silent ends the wait.
func TestFleetShardGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caches, networks := fleet(t, 2, &fleetOptions)
		go caches[0].GetOrLoad(context.Background(), "k", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		time.Sleep(100 * time.Millisecond)
		time.AfterFunc(300*time.Millisecond, func() { networks[1].cut.Store(true) })
		var s source
		took := ask(t, caches[1:], s.load, func(_ int, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		if took > 900*time.Millisecond {
			t.Errorf("took %v, want the rest of 0.3 s and a time-out of 0.5 s", took)
		}
	})
}

// TestFleetMany: loads of many keys are shared among processes key by key.
func TestFleetMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caches, _ := fleet(t, 4, &fleetOptions)
		keys := manyKeys(40)
		var loaded atomic.Int64
		var wg sync.WaitGroup
		for i, c := range caches {
			wg.Go(func() {
				got, err := c.GetMany(t.Context(), keys[5*i:20+5*i], func(_ context.Context, keys []string) (map[string]int, error) {
					loaded.Add(int64(len(keys)))
					time.Sleep(300 * time.Millisecond)
					m := map[string]int{}
					for _, key := range keys {
						m[key] = 1
					}
					return m, nil
				})
				if err != nil || len(got) != 20 {
					t.Errorf("got %d of 20, %v", len(got), err)
				}
			})
		}
		wg.Wait()
		if n := loaded.Load(); n != 35 {
			t.Errorf("got %d values loaded, want each of 35 once", n)
		}
	})
}
