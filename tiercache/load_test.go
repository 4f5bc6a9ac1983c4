package tiercache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// TestOneLoad: ten thousand who miss a key at one time are one load, and one
// read of the shard.
func TestOneLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &faulty{Shard: memory.New(nil)}
		c := open[string](t, one(network), &tiercache.Options{Heartbeat: time.Hour})
		synced(t, c)
		network.commands.Store(0)
		var loads atomic.Int64
		var wg sync.WaitGroup
		for range 10_000 {
			wg.Go(func() {
				v, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (string, error) {
					loads.Add(1)
					time.Sleep(50 * time.Millisecond)
					return "v", nil
				})
				if v != "v" || err != nil {
					t.Errorf("got %q, %v", v, err)
				}
			})
		}
		wg.Wait()
		// A read, a lease, a fill; the last two are sent anew, when the script is not known.
		if n := network.commands.Load(); loads.Load() != 1 || n > 5 {
			t.Errorf("got %d loads with %d commands, want 1 with 5 at most", loads.Load(), n)
		}
	})
}

// TestOneLoadOfMany: loads of many keys and of one share what is under way, in
// either order.
func TestOneLoadOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards, _ := three()
		c := open[[]byte](t, shards, nil) // not immutable: each caller must get his own
		synced(t, c)
		var mu sync.Mutex
		var loaded []string
		load := func(keys ...string) map[string][]byte {
			mu.Lock()
			loaded = append(loaded, keys...)
			mu.Unlock()
			time.Sleep(time.Second)
			m := map[string][]byte{}
			for _, key := range keys {
				m[key] = []byte(key)
			}
			return m
		}
		many := func(_ context.Context, keys []string) (map[string][]byte, error) { return load(keys...), nil }
		single := func(key string) ([]byte, error) {
			return c.GetOrLoad(t.Context(), key, func(context.Context) ([]byte, error) { return load(key)[key], nil })
		}
		keys := manyKeys(60)
		check := func(key string, v []byte, err error) {
			t.Helper()
			if err != nil || string(v) != key {
				t.Errorf("%s: got %q, %v", key, v, err)
			}
			if len(v) > 0 {
				v[0] = 'X'
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { v, err := single(keys[0]); check(keys[0], v, err) })
		synctest.Wait()
		ask := func(keys []string) {
			wg.Go(func() {
				got, err := c.GetMany(t.Context(), keys, many)
				if err != nil {
					t.Error(err)
				}
				for _, key := range keys {
					check(key, got[key], nil)
				}
			})
			synctest.Wait()
		}
		ask(keys[:40])
		ask(keys[20:])
		for _, key := range keys {
			wg.Go(func() { v, err := single(key); check(key, v, err) })
		}
		wg.Wait()
		slices.Sort(loaded)
		if want := slices.Sorted(slices.Values(keys)); !slices.Equal(loaded, want) {
			t.Errorf("got loads of %d keys, want each of %d once", len(loaded), len(want))
		}
	})
}

// TestManyLeave: who asks for many keys and leaves does not end the load for those
// who wait for one of them.
func TestManyLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open[int](t, one(memory.New(nil)), nil)
		synced(t, c)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			_, err := c.GetMany(ctx, []string{"a", "b"}, func(ctx context.Context, keys []string) (map[string]int, error) {
				select {
				case <-time.After(time.Second):
					return map[string]int{"a": 1, "b": 2}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})
			left <- err
		}()
		synctest.Wait()
		stays := make(chan error, 1)
		go func() {
			v, err := c.GetOrLoad(context.Background(), "b", func(context.Context) (int, error) { return 3, nil })
			if err == nil && v != 2 {
				err = fmt.Errorf("got %d, want 2", v)
			}
			stays <- err
		}()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: got %v, want Canceled", err)
		}
		if err := <-stays; err != nil {
			t.Errorf("who stayed: %v", err)
		}
	})
}

// TestCloseEndsLoads: Close waits for loads, and not for loaders that hang. What
// these return later is stored nowhere.
func TestCloseEndsLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[int](t, one(shard), nil), open[int](t, one(shard), nil)
		synced(t, a, b)
		hang := make(chan struct{})
		single, many := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := a.GetOrLoad(context.Background(), "k", func(context.Context) (int, error) { <-hang; return 1, nil })
			single <- err
		}()
		go func() {
			_, err := a.GetMany(context.Background(), []string{"m", "k"}, func(context.Context, []string) (map[string]int, error) {
				<-hang
				return map[string]int{"m": 1}, nil
			})
			many <- err
		}()
		synctest.Wait()
		began := time.Now()
		if err := a.Close(); err != nil || time.Since(began) > 0 {
			t.Errorf("Close: %v after %v", err, time.Since(began))
		}
		for name, err := range map[string]error{"one key": <-single, "many": <-many} {
			if !errors.Is(err, tiercache.ErrClosed) {
				t.Errorf("%s: got %v, want ErrClosed", name, err)
			}
		}
		close(hang)
		synctest.Wait()
		wantNone(t, b, "k")
		wantNone(t, b, "m")
	})
}
