package tiercache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// A promises is a key of the database: its version, and when which was acknowledged
// to be gone from the cache.
type promises struct {
	mu      sync.Mutex
	version int64
	acked   []time.Time // of version i+1, when the Delete after its write had returned
}

func (l *promises) write() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
}

func (l *promises) read() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}

// floor is the version that a read which begins at the time must give, or a later one.
func (l *promises) floor(at time.Time) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.acked)
	for n > 0 && l.acked[n-1].Add(bound).After(at) {
		n--
	}
	return int64(n)
}

// TestStaleModel: with every option of loads in use, a source that fails and hangs,
// processes that miss notices, and a writer, no read gives what was deleted longer
// than the bound before it began, as long as its shard can be reached.
func TestStaleModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		opts := &tiercache.Options{
			TTL: 3 * time.Second, StaleFor: time.Hour, SoftTimeout: 100 * time.Millisecond,
			LoadTimeout: 4 * time.Second, RefreshAhead: time.Second, FleetWait: 500 * time.Millisecond,
		}
		var caches []*tiercache.Cache[int]
		var networks []*faulty
		for i := range 3 {
			f := &faulty{Shard: shard, delay: upTo(seed+uint64(i), 5*time.Millisecond)}
			networks = append(networks, f)
			caches = append(caches, open[int](t, one(f), opts))
		}
		writer := open[int](t, one(shard), nil)
		synced(t, append(caches, writer)...)
		const keys = 20
		var ledgers [keys]promises
		end := time.Now().Add(time.Minute)
		var wg sync.WaitGroup
		start := func(n uint64, f func(rnd *rand.Rand)) {
			wg.Go(func() {
				for rnd := rand.New(rand.NewPCG(seed, n)); time.Now().Before(end); {
					f(rnd)
				}
			})
		}
		start(0, func(rnd *rand.Rand) {
			time.Sleep(time.Duration(rnd.Int64N(int64(300 * time.Millisecond))))
			i := rnd.IntN(keys)
			ledgers[i].write()
			if err := writer.Delete(t.Context(), fmt.Sprint(i)); err != nil {
				t.Error(err)
			}
			ledgers[i].mu.Lock()
			ledgers[i].acked = append(ledgers[i].acked, time.Now())
			ledgers[i].mu.Unlock()
		})
		for p, f := range networks {
			start(uint64(10+p), func(rnd *rand.Rand) {
				time.Sleep(time.Duration(rnd.Int64N(int64(5 * time.Second))))
				hush := &f.deaf
				if rnd.IntN(2) == 0 {
					hush = &f.swallow
				}
				hush.Store(true)
				time.Sleep(time.Duration(rnd.Int64N(int64(5 * time.Second))))
				hush.Store(false)
			})
		}
		for p, c := range caches {
			for n := range 4 {
				start(uint64(100+10*p+n), func(rnd *rand.Rand) {
					time.Sleep(time.Duration(rnd.Int64N(int64(20 * time.Millisecond))))
					i, takes, what := rnd.IntN(keys), time.Duration(rnd.Int64N(int64(200*time.Millisecond))), rnd.IntN(20)
					began := time.Now()
					v, err := c.GetOrLoad(t.Context(), fmt.Sprint(i), func(ctx context.Context) (int, error) {
						v := ledgers[i].read()
						if what == 0 {
							takes = time.Hour
						}
						select {
						case <-time.After(takes):
						case <-ctx.Done():
							return 0, ctx.Err()
						}
						if what < 10 {
							return 0, errDown
						}
						return int(v), nil
					})
					switch floor := ledgers[i].floor(began); {
					case err == nil && int64(v) < floor:
						t.Errorf("process %d: key %d: got version %d, %d was acknowledged %v before (seed %d)", p, i, v, floor, bound, seed)
					case err != nil && !errors.Is(err, errDown) && !errors.Is(err, context.DeadlineExceeded):
						t.Errorf("key %d: %v", i, err)
					}
				})
			}
		}
		wg.Wait()
		var sum tiercache.Stats
		for _, c := range caches {
			s := c.Stats()
			sum.Stale, sum.Refreshes, sum.Awaited, sum.RefusedFills = sum.Stale+s.Stale, sum.Refreshes+s.Refreshes, sum.Awaited+s.Awaited, sum.RefusedFills+s.RefusedFills
		}
		t.Logf("%d stale values, %d refreshes, %d awaited, %d fills refused", sum.Stale, sum.Refreshes, sum.Awaited, sum.RefusedFills)
		if sum.Stale == 0 || sum.Refreshes == 0 || sum.Awaited == 0 || sum.RefusedFills == 0 {
			t.Error("not every option was in use: the test shows nothing of it")
		}
	})
}
