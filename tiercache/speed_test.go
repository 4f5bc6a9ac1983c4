package tiercache_test

import (
	"container/list"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

func TestLocalHitAllocs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := t.Context()
	text := open[string](t, one(memory.New(nil)), nil)
	shared := open[[]byte](t, one(memory.New(nil)), &tiercache.Options{Shared: true})
	users := open[user](t, one(memory.New(nil)), nil)
	synced(t, text)
	synced(t, shared)
	synced(t, users)
	mustSet(t, text, "k", "value")
	mustSet(t, shared, "k", []byte("value"))
	mustSet(t, users, "k", user{"Ada", "7"})
	for name, get := range map[string]func(){
		"string":        func() { text.Get(ctx, "k") },
		"shared []byte": func() { shared.Get(ctx, "k") },
		"plain struct":  func() { users.Get(ctx, "k") },
		"GetOrLoad":     func() { text.GetOrLoad(ctx, "k", nil) },
	} {
		if n := testing.AllocsPerRun(1000, get); n != 0 {
			t.Errorf("%s: got %v allocations a hit, want 0", name, n)
		}
	}
	if s := text.Stats(); s.ShardHits != 0 {
		t.Errorf("%d reads were no hits in L1", s.ShardHits)
	}
}

// TestLocalHitSpeed compares a hit, with its life and trust checked and counted,
// with otter's own, without expiry: in turns, by the median of the rounds.
func TestLocalHitSpeed(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector distorts it")
	}
	const keys, rounds, turn = 1000, 101, 20_000
	value := string(make([]byte, 100))
	plain := otter.Must(&otter.Options[string, string]{MaximumSize: 2 * keys})
	c := open[string](t, one(memory.New(nil)), nil)
	synced(t, c)
	names := manyKeys(keys)
	for _, key := range names {
		plain.Set(key, value)
		mustSet(t, c, key, value)
	}
	ctx := t.Context()
	took := func(f func(key string)) time.Duration {
		start := time.Now()
		for i := range turn {
			f(names[i%keys])
		}
		return time.Since(start)
	}
	var ratios, ours []float64
	for range rounds {
		base := took(func(key string) { plain.GetIfPresent(key) })
		hit := took(func(key string) { c.Get(ctx, key) })
		ratios = append(ratios, float64(hit)/float64(base))
		ours = append(ours, float64(hit)/turn)
	}
	slices.Sort(ratios)
	slices.Sort(ours)
	t.Logf("a hit takes %.2f of otter's GetIfPresent (quartiles %.2f to %.2f); %.0f ns", ratios[rounds/2], ratios[rounds/4], ratios[rounds*3/4], ours[rounds/2])
	if ratios[rounds/2] > 3.5 {
		t.Errorf("got %.2f, want 3.5 at most", ratios[rounds/2])
	}
	if s := c.Stats(); s.ShardHits > rounds*turn/100 {
		t.Errorf("%d of %d were no hits in L1", s.ShardHits, rounds*turn)
	}
}

// TestHitRatio compares L1, at 1 % of the keys, with an exact LRU of that size,
// under a Zipf load.
func TestHitRatio(t *testing.T) {
	if raceEnabled {
		t.Skip("it takes long under the race detector: make test-speed runs it")
	}
	const keys, capacity, reads = 50_000, 500, 300_000
	c := open[int](t, one(memory.New(nil)), &tiercache.Options{LocalEntries: capacity})
	synced(t, c)
	seed := rand.Uint64()
	zipf := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), 1.01, 1, keys-1)
	lru := exactLRU{capacity: capacity, order: list.New(), at: map[uint64]*list.Element{}}
	for range reads {
		k := zipf.Uint64()
		lru.read(k)
		if _, err := c.GetOrLoad(t.Context(), fmt.Sprint(k), func(context.Context) (int, error) { return int(k), nil }); err != nil {
			t.Fatal(err)
		}
	}
	s := c.Stats()
	ours, exact := float64(s.LocalHits)/float64(reads), float64(lru.hits)/float64(reads)
	t.Logf("hit ratio %.3f, an exact LRU's %.3f (seed %d)", ours, exact, seed)
	if ours < exact {
		t.Errorf("got a hit ratio of %.3f, want an exact LRU's %.3f at least (seed %d)", ours, exact, seed)
	}
}

type exactLRU struct {
	capacity, hits int
	order          *list.List
	at             map[uint64]*list.Element
}

func (l *exactLRU) read(k uint64) {
	if e, ok := l.at[k]; ok {
		l.hits++
		l.order.MoveToFront(e)
		return
	}
	l.at[k] = l.order.PushFront(k)
	if l.order.Len() > l.capacity {
		last := l.order.Back()
		delete(l.at, l.order.Remove(last).(uint64))
	}
}
