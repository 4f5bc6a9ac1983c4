package tier

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// TestManyLive: a thousand keys over three servers are one round trip each, and
// with one server dead the others' values come, with errors for its keys.
func TestManyLive(t *testing.T) {
	eachClient(t, func(t *testing.T, c client) {
		nodes := servers(t, 3, harness.Options{})
		cache := open[int](t, c, nodes, &tiercache.Options{LocalBytes: -1})
		synced(t, cache)
		values := map[string]int{}
		var keys []string
		for i := range 1000 {
			keys = append(keys, key(i))
			values[key(i)] = i
		}
		ok(t, cache.SetMany(t.Context(), values))
		for _, n := range nodes {
			_, err := n.Do(t.Context(), "CONFIG", "RESETSTAT")
			ok(t, err)
		}
		got, err := cache.GetMany(t.Context(), keys, nil)
		if err != nil || len(got) != len(keys) {
			t.Fatalf("got %d of %d, %v", len(got), len(keys), err)
		}
		for _, n := range nodes {
			stats, err := n.Do(t.Context(), "INFO", "commandstats")
			ok(t, err)
			if !strings.Contains(stats.(string), "cmdstat_mget:calls=1,") {
				t.Errorf("%s: not one MGET: %v", n, stats)
			}
		}
		ok(t, nodes[0].Kill())
		start := time.Now()
		got, err = cache.GetMany(t.Context(), keys, nil)
		var failed *tiercache.KeysError
		if !errors.As(err, &failed) || time.Since(start) > 10*time.Second {
			t.Fatalf("one server dead: got %v after %v, want a *KeysError", err, time.Since(start))
		}
		for _, key := range keys {
			gone := cache.Ring().Locate(key) == nodes[0].Name()
			if v, there := got[key]; there == gone || there && v != values[key] || (failed.Errs[key] != nil) != gone {
				t.Fatalf("%s: value %v (%v), error %v, its server dead: %v", key, v, there, failed.Errs[key], gone)
			}
		}
	})
}

// TestAllFrozen: loaders run, and nobody waits for longer than a time-out.
func TestAllFrozen(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		nodes := servers(t, 3, harness.Options{})
		cache := open[int](t, c, nodes, nil)
		synced(t, cache)
		mustSet(t, cache, key(0), -1)
		for _, n := range nodes {
			ok(t, n.Freeze())
		}
		for i := 1; i < 12; i++ {
			start := time.Now()
			v, err := cache.GetOrLoad(t.Context(), key(i), func(context.Context) (int, error) { return i, nil })
			if took := time.Since(start); err != nil || v != i || took > late {
				t.Fatalf("key %d: got %d, %v after %v, want the loader's value after 0.5 s at most", i, v, err, took)
			}
		}
		if err := cache.Delete(t.Context(), key(0)); err == nil {
			t.Error("a Delete at frozen shards has no error")
		}
		for _, n := range nodes {
			ok(t, n.Thaw())
		}
		serving(t, cache)
		for i := range 12 {
			mustSet(t, cache, key(i), 100+i)
			wantGet(t, cache, key(i), 100+i)
		}
	})
}

// TestFullServer: a server that takes no more writes still answers reads, and
// deletes.
func TestFullServer(t *testing.T) {
	eachClient(t, func(t *testing.T, c client) {
		n := servers(t, 1, harness.Options{Args: []string{"--maxmemory", "4mb", "--maxmemory-policy", "noeviction"}})[0]
		cache := open[string](t, c, []*harness.Node{n}, nil)
		synced(t, cache)
		var err error
		written := 0
		for ; err == nil && written < 2000; written++ {
			err = cache.Set(t.Context(), fmt.Sprint("k", written), strings.Repeat("x", 10_000))
		}
		var failed *tiercache.ShardError
		if !errors.As(err, &failed) || !strings.Contains(err.Error(), "OOM") {
			t.Fatalf("after %d values: got %v, want OOM", written, err)
		}
		if v, err := cache.Get(t.Context(), "k0"); err != nil || len(v) != 10_000 {
			t.Errorf("a read: got %d bytes, %v", len(v), err)
		}
		v, err := cache.GetOrLoad(t.Context(), "new", func(context.Context) (string, error) { return "loaded", nil })
		if v != "loaded" || err != nil {
			t.Errorf("a load: got %q, %v", v, err)
		}
		mustDelete(t, cache, "k0")
		// A miss may have to write down that it found the server, which is refused.
		if v, err := cache.Get(t.Context(), "k0"); err == nil || !errors.Is(err, tiercache.ErrNotFound) && !strings.Contains(err.Error(), "OOM") {
			t.Errorf("after a delete: got %d bytes, %v, want ErrNotFound or OOM", len(v), err)
		}
	})
}

// TestLivesLive: lives below a second are kept, in L1 as on the server.
func TestLivesLive(t *testing.T) {
	eachClient(t, func(t *testing.T, c client) {
		nodes := servers(t, 1, harness.Options{})
		a, b := open[int](t, c, nodes, nil), open[int](t, c, nodes, nil)
		synced(t, a, b)
		for _, life := range []time.Duration{time.Microsecond, 150 * time.Millisecond} {
			began := time.Now()
			mustSet(t, a, "k", 1, tiercache.TTL(life))
			end := time.Now().Add(life + time.Millisecond)
			if v, err := b.Get(t.Context(), "k"); time.Since(began) < life-time.Millisecond && (err != nil || v != 1) {
				t.Errorf("within a life of %v: got %d, %v", life, v, err)
			}
			for _, c := range []*tiercache.Cache[int]{a, b} {
				within(t, time.Minute, "the value ends", func() bool { _, err := c.Get(t.Context(), "k"); return errors.Is(err, tiercache.ErrNotFound) })
			}
			if late := time.Since(end); late > 100*time.Millisecond && !raceEnabled {
				t.Errorf("a life of %v ended %v late", life, late)
			}
		}
		mustSet(t, a, "k", 1, tiercache.TTL(1<<63-1))
		wantGet(t, b, "k", 1)
	})
}

func wantNone[V any](t *testing.T, c *tiercache.Cache[V], key string) {
	t.Helper()
	var got V
	err := inTime(t, func() (err error) { got, err = c.Get(t.Context(), key); return err })
	if !errors.Is(err, tiercache.ErrNotFound) {
		t.Fatalf("Get(%q): got %v, %v, want ErrNotFound", key, got, err)
	}
}
