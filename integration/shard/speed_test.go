package shard

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/harness"
)

// What a shard adds to a read: MGET of two keys, against the client's own GET,
// both with a deadline, in turns of 40 reads. At most 1.2 times one at a time, and
// at least 0.7 of the throughput at 64 in flight. What the deadline itself costs
// (a timer a call) is shown beside it.
func TestReadSpeed(t *testing.T) {
	if os.Getenv("SHARDKIT_LONG") != "1" || raceEnabled {
		t.Skip("a measurement: SHARDKIT_LONG=1, without -race")
	}
	n := server(t, harness.Options{})
	if _, err := n.Do(t.Context(), "SET", "k", string(make([]byte, 100))); err != nil {
		t.Fatal(err)
	}
	goRedis := redis.NewClient(&redis.Options{Addr: n.Addr(), PoolSize: 64})
	defer goRedis.Close()
	rueidisClient, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{n.Addr()}, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer rueidisClient.Close()
	rueidisShard, err := rueidisbackend.NewShard(rueidisClient)
	if err != nil {
		t.Fatal(err)
	}
	goRedisShard := goredis.NewShard(goRedis)
	for _, c := range []struct {
		name        string
		raw, shards func(ctx context.Context) error
	}{
		{"goredis",
			func(ctx context.Context) error { return goRedis.Get(ctx, "k").Err() },
			func(ctx context.Context) error {
				_, err := goRedisShard.Do(ctx, []string{"MGET", "k", "e"})
				return err
			}},
		{"rueidis",
			func(ctx context.Context) error {
				return rueidisClient.Do(ctx, rueidisClient.B().Get().Key("k").Build()).Error()
			},
			func(ctx context.Context) error {
				_, err := rueidisShard.Do(ctx, []string{"MGET", "k", "e"})
				return err
			}},
	} {
		raw, shards := limited(c.raw), limited(c.shards)
		one, many := ratio(t, 1, 40, 300, raw, shards), 1/ratio(t, 64, 6400, 20, raw, shards)
		t.Logf("%s: one at a time %.2f of the client's own GET's time, at 64 in flight %.2f of its throughput; against a GET without a deadline %.2f and %.2f",
			c.name, one, many, ratio(t, 1, 40, 300, c.raw, shards), 1/ratio(t, 64, 6400, 20, c.raw, shards))
		if one > 1.2 {
			t.Errorf("%s: one at a time: %.2f, want 1.2 at most", c.name, one)
		}
		if many < 0.7 {
			t.Errorf("%s: at 64 in flight: %.2f of the throughput, want 0.7 at least", c.name, many)
		}
	}
}

// limited is f with a deadline of its own.
func limited(f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return f(ctx)
	}
}

// ratio is the median over the rounds of b's time in a's.
func ratio(t *testing.T, atOnce, calls, rounds int, a, b func(context.Context) error) float64 {
	took := func(f func(context.Context) error) float64 {
		start := time.Now()
		var wg sync.WaitGroup
		for range atOnce {
			wg.Go(func() {
				for range calls / atOnce {
					if err := f(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return float64(time.Since(start))
	}
	took(a)
	took(b)
	var ratios []float64
	for range rounds {
		base := took(a)
		ratios = append(ratios, took(b)/base)
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
