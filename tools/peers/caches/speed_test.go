package caches

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/cache/v9"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// TestLocalHitSpeed compares a hit in L1, with its life and trust checked, with
// a local hit of go-redis/cache, of 100-byte strings: in turns, by the median of
// the rounds.
func TestLocalHitSpeed(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector distorts it")
	}
	const keys, rounds, turn = 1000, 101, 20_000
	ctx := t.Context()
	peer := cache.New(&cache.Options{LocalCache: cache.NewTinyLFU(10*keys, time.Hour)})
	ours, err := tiercache.New[string](map[string]tiercache.Shard{"s": memory.New(nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	for deadline := time.Now().Add(10 * time.Second); !ours.Stats().Shards[0].Synced; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("tiercache does not listen to its shard after 10 s")
		}
	}
	value := strings.Repeat("v", 100)
	var names []string
	for i := range keys {
		name := fmt.Sprint("key:", i)
		names = append(names, name)
		if err := peer.Set(&cache.Item{Ctx: ctx, Key: name, Value: value}); err != nil {
			t.Fatal(err)
		}
		if err := ours.Set(ctx, name, value); err != nil {
			t.Fatal(err)
		}
	}
	missed := 0
	took := func(get func(ctx context.Context, key string) (string, error)) float64 {
		start := time.Now()
		for i := range turn {
			if got, err := get(ctx, names[i%keys]); err != nil || got != value {
				missed++
			}
		}
		return float64(time.Since(start)) / turn
	}
	var ratios, hits []float64
	for range rounds {
		base := took(func(ctx context.Context, key string) (got string, err error) {
			err = peer.Get(ctx, key, &got)
			return got, err
		})
		hit := took(ours.Get)
		ratios, hits = append(ratios, hit/base), append(hits, hit)
	}
	slices.Sort(ratios)
	slices.Sort(hits)
	t.Logf("a hit takes %.2f of go-redis/cache's (quartiles %.2f to %.2f); %.0f ns", ratios[rounds/2], ratios[rounds/4], ratios[rounds*3/4], hits[rounds/2])
	if ratios[rounds/2] > 0.6 {
		t.Errorf("got %.2f of go-redis/cache's local hit, want 0.6 at most", ratios[rounds/2])
	}
	if s := ours.Stats(); missed > 0 || s.ShardHits > rounds*turn/100 {
		t.Errorf("%d reads did not give their value, %d were no hits in L1", missed, s.ShardHits)
	}
}
