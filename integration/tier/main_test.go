// Package tier holds tests of tiercache on real servers, over every client.
package tier

import (
	"context"
	"errors"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/tiercache"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(childAddr); addr != "" {
		child(addr)
		return
	}
	if addr := os.Getenv(fleetAddr); addr != "" {
		fleetChild(addr)
		return
	}
	flag.Parse()
	flag.Set("test.parallel", "8") // most of these tests wait for most of their time
	if long() && !raceEnabled {
		flag.Set("test.parallel", "12")
	}
	if idle() {
		flag.Set("test.parallel", "1")
	}
	logging.Disable() // go-redis prints each connection that is refused
	os.Exit(harnesstest.Main(m, func() error { return goleak.Find() }))
}

// client is a way to reach a server.
type client struct {
	name string
	dial func(addr string) (tiercache.Shard, func(), error)
}

var clients = []client{
	{"goredis", func(addr string) (tiercache.Shard, func(), error) {
		client := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 64})
		return goredis.NewShard(client), func() { client.Close() }, nil
	}},
	{"rueidis", func(addr string) (tiercache.Shard, func(), error) {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true})
		if err != nil {
			return nil, nil, err
		}
		s, err := rueidisbackend.NewShard(client)
		return s, client.Close, err
	}},
}

// eachClient runs a test over each client. The test may call t.Parallel.
func eachClient(t *testing.T, test func(t *testing.T, c client)) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) { test(t, c) })
	}
}

func (c client) shard(t testing.TB, addr string) tiercache.Shard {
	t.Helper()
	s, done, err := c.dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return s
}

// servers are of this test's own, which it may break.
func servers(t testing.TB, n int, o harness.Options) []*harness.Node {
	t.Helper()
	o.Shards, o.Private = n, true
	return harnesstest.Shards(t, o).Nodes()
}

// open returns a cache over the servers, with clients of its own.
func open[V any](t testing.TB, c client, nodes []*harness.Node, opts *tiercache.Options) *tiercache.Cache[V] {
	t.Helper()
	shards := map[string]tiercache.Shard{}
	for _, n := range nodes {
		shards[n.Name()] = c.shard(t, n.Addr())
	}
	cache, err := tiercache.New[V](shards, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cache.Close() })
	return cache
}

// synced waits until L1 takes values of every shard.
func synced[V any](t testing.TB, caches ...*tiercache.Cache[V]) {
	t.Helper()
	within(t, time.Minute, "the caches listen to every shard", func() bool {
		for _, c := range caches {
			for _, s := range c.Stats().Shards {
				if !s.Synced {
					return false
				}
			}
		}
		return true
	})
}

// serving waits until every shard serves.
func serving[V any](t testing.TB, caches ...*tiercache.Cache[V]) {
	t.Helper()
	within(t, time.Minute, "every shard serves", func() bool {
		for _, c := range caches {
			for _, h := range c.Health() {
				if h.State != tiercache.ShardServing {
					return false
				}
			}
		}
		return true
	})
}

func within(t testing.TB, d time.Duration, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(d); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", d, what)
		}
	}
}

// inTime calls again what a server that is well was late for, as it may be on a
// busy machine.
func inTime(t testing.TB, call func() error) error {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := call()
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, tiercache.ErrUnavailable) || time.Now().After(deadline) {
			return err
		}
	}
}

func mustSet[V any](t testing.TB, c *tiercache.Cache[V], key string, value V, opts ...tiercache.CallOption) {
	t.Helper()
	ok(t, inTime(t, func() error { return c.Set(context.Background(), key, value, opts...) }))
}

func mustDelete[V any](t testing.TB, c *tiercache.Cache[V], key string) {
	t.Helper()
	ok(t, inTime(t, func() error { return c.Delete(context.Background(), key) }))
}

func mustInvalidate[V any](t testing.TB, c *tiercache.Cache[V], tag string) {
	t.Helper()
	ok(t, inTime(t, func() error { return c.InvalidateTag(context.Background(), tag) }))
}

func wantGet[V comparable](t testing.TB, c *tiercache.Cache[V], key string, want V) {
	t.Helper()
	var got V
	err := inTime(t, func() (err error) { got, err = c.Get(context.Background(), key); return err })
	if err != nil || got != want {
		t.Fatalf("Get(%q): got %v, %v, want %v", key, got, err, want)
	}
}

func long() bool { return os.Getenv("SHARDKIT_LONG") == "1" }

// idle: the machine does nothing else, so what it gives is asserted.
func idle() bool { return os.Getenv("SHARDKIT_IDLE") == "1" }

// lasts is how long a test goes on at least: as $SHARDKIT_SOAK says, or d with SHARDKIT_LONG=1.
func lasts(t testing.TB, d time.Duration) time.Duration {
	t.Helper()
	if text := os.Getenv("SHARDKIT_SOAK"); text != "" {
		soak, err := time.ParseDuration(text)
		ok(t, err)
		return soak
	}
	if !long() {
		return 0
	}
	return d
}
