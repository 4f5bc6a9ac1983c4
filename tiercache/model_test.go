package tiercache_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

var (
	modelSeed = flag.Uint64("model.seed", 0, "seed of the interleavings; 0 draws one")
	modelKeys = flag.Int("model.keys", 0, "keys, of which each is one interleaving; 0 means 4000, 1000 under the race detector, or 20000 with SHARDKIT_LONG=1")
)

// A record is a key in the database that the cache stands before. Its writers
// take turns, as a database has them do; its readers do not wait for them.
type record struct {
	writer  chan struct{} // full from a write of the database to the end of that of the cache
	version atomic.Int64
	acked   [processes]atomic.Int64 // last version that a process wrote and that was acknowledged
}

const processes = 3

// interleave runs loads, reads, sets and deletes of many keys in several
// processes at once, over a network that holds each message up for a random
// time. It returns how many caches still gave an old value when all was quiet,
// and how often a process did not read its own last write.
func interleave(t *testing.T, seed uint64, keys int, off tiercache.Mechanisms) (stale, unread int) {
	t.Helper()
	shard := memory.New(nil)
	var caches [processes]*tiercache.Cache[int]
	for i := range caches {
		f := &faulty{Shard: shard, delay: upTo(seed+uint64(i), 10*time.Millisecond), late: seldom(seed+uint64(i), 10*time.Millisecond)}
		caches[i] = openWithout[int](t, one(f), &tiercache.Options{LocalEntries: 1 << 20}, off)
	}
	synced(t, caches[:]...)
	rnd := rand.New(rand.NewPCG(seed, 1))
	records := make([]record, keys)
	var wrong atomic.Int64
	var wg sync.WaitGroup
	for i := range records {
		records[i].writer = make(chan struct{}, 1)
		r, key := &records[i], fmt.Sprint("k", i)
		for range 3 + rnd.IntN(5) {
			p, start, work := rnd.IntN(processes), rnd.IntN(100), rnd.IntN(40)
			what := rnd.IntN(10)
			wg.Go(func() {
				time.Sleep(time.Duration(start)*time.Millisecond + time.Duration(i%97)*time.Microsecond)
				c := caches[p]
				ctx, cancel := context.WithTimeout(context.Background(), 400*time.Millisecond)
				defer cancel()
				floor := int(r.acked[p].Load())
				switch {
				case what < 4: // load
					v, err := c.GetOrLoad(ctx, key, func(context.Context) (int, error) {
						v := r.version.Load()
						time.Sleep(time.Duration(work) * time.Millisecond)
						return int(v), nil
					})
					if err != nil {
						t.Errorf("load: %v", err)
					} else if v < floor {
						wrong.Add(1)
					}
				case what < 6: // read
					v, err := c.Get(ctx, key)
					if err == nil && v < floor {
						wrong.Add(1)
					} else if err != nil && !errors.Is(err, tiercache.ErrNotFound) {
						t.Errorf("get: %v", err)
					}
				default: // write
					r.writer <- struct{}{} // a mutex would hold up the bubble's clock
					defer func() { <-r.writer }()
					v := r.version.Add(1)
					var err error
					if what < 8 {
						err = c.Set(ctx, key, int(v))
					} else {
						err = c.Delete(ctx, key)
					}
					if err != nil {
						t.Errorf("write: %v", err)
					}
					r.acked[p].Store(v)
				}
			})
		}
	}
	wg.Wait()
	time.Sleep(2 * time.Second) // of the bubble: notices queue up behind late ones
	synctest.Wait()
	fresh := openWithout[int](t, one(shard), nil, off) // what L2 holds
	synced(t, fresh)
	for i := range records {
		want := int(records[i].version.Load())
		for j, c := range append(caches[:], fresh) {
			v, err := c.Get(t.Context(), fmt.Sprint("k", i))
			if err == nil && v != want {
				stale++
				if off == (tiercache.Mechanisms{}) {
					t.Logf("k%d: cache %d of %d holds %d, want %d", i, j, processes, v, want)
				}
			} else if err != nil && !errors.Is(err, tiercache.ErrNotFound) {
				t.Errorf("get: %v", err)
			}
		}
	}
	return stale, int(wrong.Load())
}

// TestInterleavings: whatever the order in which loads, fills, reads, writes,
// deletes and notices meet, no old value stays, in L1 or L2, and a process reads
// its own last write or a later one.
func TestInterleavings(t *testing.T) {
	seed, keys := *modelSeed, *modelKeys
	if seed == 0 {
		seed = rand.Uint64()
	}
	if keys == 0 {
		keys = 4000
		if raceEnabled {
			keys = 1000
		}
		if os.Getenv("SHARDKIT_LONG") == "1" {
			keys = 20_000
		}
	}
	const batch = 4000
	for done := 0; done < keys; done += batch {
		n := min(batch, keys-done)
		ok := t.Run(fmt.Sprint(done), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stale, unread := interleave(t, seed+uint64(done), n, tiercache.Mechanisms{})
				if stale != 0 || unread != 0 {
					t.Errorf("%d old values survived, %d reads were older than the process's own write", stale, unread)
				}
			})
		})
		if !ok {
			t.Fatalf("again: go test -run TestInterleavings ./tiercache -model.seed=%d -model.keys=%d", seed+uint64(done), n)
		}
	}
	t.Logf("%d interleavings from seed %d", keys, seed)
}

// TestInterleavingsNeed shows that the model misses what it should.
func TestInterleavingsNeed(t *testing.T) {
	for name, test := range map[string]struct {
		off  tiercache.Mechanisms
		keys int // in which some 60 old values stay, or 25
	}{
		"marker":  {tiercache.Mechanisms{Marker: true}, 250},
		"stripes": {tiercache.Mechanisms{Stripes: true}, 800},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stale, unread := interleave(t, rand.Uint64(), test.keys, test.off)
				t.Logf("without %s: %d old values of %d keys, %d unread", name, stale, test.keys, unread)
				if stale == 0 {
					t.Errorf("without %s no old value survived: the model does not see it", name)
				}
			})
		})
	}
}
