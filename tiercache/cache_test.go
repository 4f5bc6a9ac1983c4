package tiercache_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

func TestMain(m *testing.M) {
	if raceEnabled {
		// In a bubble of synctest the runtime (Go 1.26) lets two threads that find a timer expired use one context of the
		// race detector, which then crashes. It finds races on one processor, too.
		runtime.GOMAXPROCS(1)
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// open returns a cache over shards, which is closed at the end of the test.
func open[V any](t testing.TB, shards map[string]tiercache.Shard, opts *tiercache.Options) *tiercache.Cache[V] {
	t.Helper()
	return openWithout[V](t, shards, opts, tiercache.Mechanisms{})
}

func openWithout[V any](t testing.TB, shards map[string]tiercache.Shard, opts *tiercache.Options, off tiercache.Mechanisms) *tiercache.Cache[V] {
	t.Helper()
	c, err := tiercache.NewWithout[V](shards, opts, off)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// synced waits until L1 takes values of every shard.
func synced[V any](t testing.TB, caches ...*tiercache.Cache[V]) {
	t.Helper()
	for _, c := range caches {
		within(t, 5*time.Second, "the cache listens to every shard", func() bool {
			for _, s := range c.Stats().Shards {
				if !s.Synced {
					return false
				}
			}
			return true
		})
	}
}

func within(t testing.TB, d time.Duration, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(d); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", d, what)
		}
	}
}

func one(s tiercache.Shard) map[string]tiercache.Shard { return map[string]tiercache.Shard{"a": s} }

func mustSet[V any](t testing.TB, c *tiercache.Cache[V], key string, value V, opts ...tiercache.CallOption) {
	t.Helper()
	if err := c.Set(context.Background(), key, value, opts...); err != nil {
		t.Fatal(err)
	}
}

func wantGet[V comparable](t testing.TB, c *tiercache.Cache[V], key string, want V) {
	t.Helper()
	if got, err := c.Get(context.Background(), key); err != nil || got != want {
		t.Fatalf("Get(%q): got %v, %v, want %v", key, got, err, want)
	}
}

func wantNone[V any](t testing.TB, c *tiercache.Cache[V], key string) {
	t.Helper()
	if got, err := c.Get(context.Background(), key); !errors.Is(err, tiercache.ErrNotFound) {
		t.Fatalf("Get(%q): got %v, %v, want ErrNotFound", key, got, err)
	}
}

func TestSetGetDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[string](t, one(shard), nil), open[string](t, one(shard), nil)
		synced(t, a, b)
		wantNone(t, a, "k")
		mustSet(t, a, "k", "v1")
		wantGet(t, a, "k", "v1")
		wantGet(t, b, "k", "v1")
		wantGet(t, b, "k", "v1")
		if s := a.Stats(); s.LocalHits != 1 || s.ShardHits != 0 || s.Misses != 1 {
			t.Errorf("a: got %d local hits, %d shard hits, %d misses, want 1, 0, 1", s.LocalHits, s.ShardHits, s.Misses)
		}
		if s := b.Stats(); s.LocalHits != 1 || s.ShardHits != 1 {
			t.Errorf("b: got %d local hits, %d shard hits, want 1 and 1", s.LocalHits, s.ShardHits)
		}
		mustSet(t, a, "k", "v2")
		synctest.Wait()
		wantGet(t, b, "k", "v2")
		if err := b.Delete(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		wantNone(t, b, "k")
		synctest.Wait()
		wantNone(t, a, "k")
	})
}
