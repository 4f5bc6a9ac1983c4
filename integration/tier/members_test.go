package tier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// TestMembersUnderLoad: processes add a shard, remove it and add it back with what it held
// then, each some time after the other, while all write and read. Nobody reads what was
// overwritten longer ago than two heartbeats; while he was not given the shard, than the
// life of an outage's values.
func TestMembersUnderLoad(t *testing.T) {
	t.Parallel()
	apart, pause := 700*time.Millisecond, 8*time.Millisecond
	if long() {
		apart, pause = 2500*time.Millisecond, time.Millisecond
	}
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		nodes := servers(t, 4, harness.Options{})
		extra := nodes[3]
		const processes, keys = 3, 60
		var caches []*tiercache.Cache[int]
		for range processes {
			caches = append(caches, open[int](t, c, nodes[:3], nil))
		}
		synced(t, caches...)
		var h history
		h.acked = make([][]ack, keys)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var wg sync.WaitGroup
		defer wg.Wait()
		var missing [processes]struct {
			sync.Mutex
			until time.Time
		}
		for p, cache := range caches {
			wg.Go(func() {
				for version := 1; ctx.Err() == nil; version++ {
					key := p + processes*rand.IntN(keys/processes) // one writer a key
					if cache.Set(context.Background(), fmt.Sprint("key", key), version) == nil {
						h.ack(key, version)
					}
					time.Sleep(pause)
				}
			})
			for range 2 {
				wg.Go(func() {
					for ; ctx.Err() == nil; time.Sleep(pause) {
						key, began := rand.IntN(keys), time.Now()
						got, err := cache.Get(context.Background(), fmt.Sprint("key", key))
						if len(cache.Members().Missing) > 0 {
							missing[p].Lock()
							missing[p].until = time.Now().Add(3 * time.Second)
							missing[p].Unlock()
						}
						if err != nil {
							continue
						}
						missing[p].Lock()
						lacking := time.Now().Before(missing[p].until)
						missing[p].Unlock()
						h.read(key, got, began, lacking)
					}
				})
			}
		}
		step := func(what string, f func(*tiercache.Cache[int]) error) {
			for _, cache := range caches {
				time.Sleep(apart)
				if err := inTime(t, func() error { return f(cache) }); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			time.Sleep(1500 * time.Millisecond)
		}
		add := func(cache *tiercache.Cache[int]) error {
			return cache.AddShard(context.Background(), extra.Name(), c.shard(t, extra.Addr()))
		}
		step("add", add)
		step("remove", func(cache *tiercache.Cache[int]) error { return cache.RemoveShard(context.Background(), extra.Name()) })
		step("add it back", add)
		stop()
		wg.Wait()
		t.Logf("%d reads; the oldest was overwritten %v before, %v by who lacked the shard", h.reads, h.oldest[0], h.oldest[1])
		if h.reads < 1000 {
			t.Errorf("only %d reads", h.reads)
		}
		if h.oldest[0] > 2*time.Second || h.oldest[1] > 10*time.Second {
			t.Errorf("a value was read that was overwritten %v before, and %v by who lacked the shard", h.oldest[0], h.oldest[1])
		}
		for _, cache := range caches {
			if got := cache.Members(); len(got.Shards) != 4 || len(got.Missing) > 0 {
				t.Errorf("got %+v, want 4 shards", got)
			}
		}
	})
}

type ack struct {
	version int
	at      time.Time
}

// history is the acknowledged writes of each key, in order.
type history struct {
	mu     sync.Mutex
	acked  [][]ack
	reads  int
	oldest [2]time.Duration // by whether the reader lacked the shard
}

func (h *history) ack(key, version int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.acked[key] = append(h.acked[key], ack{version, time.Now()})
}

// read takes in what a read that began at the given moment returned.
func (h *history) read(key, got int, began time.Time, lacking bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reads++
	list := h.acked[key]
	for i := len(list) - 1; i >= 0 && list[i].version > got; i-- {
		// The first later write is what counts: it was acknowledged that long before.
		if i > 0 && list[i-1].version > got {
			continue
		}
		which := 0
		if lacking {
			which = 1
		}
		if old := began.Sub(list[i].at); old > h.oldest[which] {
			h.oldest[which] = old
		}
	}
}
