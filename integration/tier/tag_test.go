package tier

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// TestTagLive invalidates a tag of very many values: one round trip a shard. What
// is set after it survives, and a load under way is not stored.
func TestTagLive(t *testing.T) {
	values := 5_000
	if long() {
		values = 100_000
	}
	eachClient(t, func(t *testing.T, c client) {
		nodes := servers(t, 3, harness.Options{})
		a, b := open[int](t, c, nodes, nil), open[int](t, c, nodes, nil)
		synced(t, a, b)
		key := func(i int) string { return fmt.Sprint("k", i) }
		batch := map[string]int{}
		for i := range values {
			batch[key(i)] = i
			if len(batch) == 5000 || i == values-1 {
				ok(t, a.SetMany(t.Context(), batch, tiercache.Tags("t"), tiercache.TTL(time.Hour)))
				batch = map[string]int{}
			}
		}
		mustSet(t, a, "plain", 1)
		for i := 0; i < values; i += values / 100 {
			wantGet(t, b, key(i), i)
		}
		for _, n := range nodes {
			_, err := n.Do(t.Context(), "CONFIG", "RESETSTAT")
			ok(t, err)
		}
		start := time.Now()
		ok(t, a.InvalidateTag(t.Context(), "t"))
		took := time.Since(start)
		for _, n := range nodes {
			// EVALSHA, once more as EVAL where the script was not known yet.
			if evals := calls(t, n, "evalsha") + calls(t, n, "eval"); evals < 1 || calls(t, n, "unlink") != 1 || calls(t, n, "scan") != 0 || calls(t, n, "mget") != 0 {
				t.Errorf("%s: got %d scripts, %d UNLINK, %d SCAN, want 1, 1, 0", n.Name(), evals, calls(t, n, "unlink"), calls(t, n, "scan"))
			}
		}
		t.Logf("%d values of a tag on 3 shards invalidated in %v", values, took)
		none := func(c *tiercache.Cache[int]) {
			t.Helper()
			for i := 0; i < values; i += values / 250 {
				if v, err := c.Get(t.Context(), key(i)); !errors.Is(err, tiercache.ErrNotFound) {
					t.Fatalf("%s: got %v, %v, want ErrNotFound", key(i), v, err)
				}
			}
			wantGet(t, c, "plain", 1)
		}
		none(a)
		within(t, bound, "b has heard of it", func() bool { _, err := b.Get(t.Context(), key(0)); return err != nil })
		none(b)
		late := open[int](t, c, nodes, nil)
		synced(t, late)
		none(late)
		mustSet(t, a, key(1), 100, tiercache.Tags("t"))
		within(t, bound, "b sees what was set after it", func() bool { v, err := b.Get(t.Context(), key(1)); return err == nil && v == 100 })

		began, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			_, err := a.GetOrLoad(context.Background(), "loaded", func(context.Context) (int, error) { close(began); <-goOn; return 1, nil }, tiercache.Tags("t"))
			done <- err
		}()
		<-began
		mustInvalidate(t, b, "t")
		close(goOn)
		ok(t, <-done)
		for i, c := range []*tiercache.Cache[int]{a, b, late} {
			if v, err := c.Get(t.Context(), "loaded"); !errors.Is(err, tiercache.ErrNotFound) {
				t.Errorf("cache %d: a load from before the invalidation is there: %v, %v", i, v, err)
			}
		}
		v, err := b.GetOrLoad(t.Context(), "loaded", func(context.Context) (int, error) { return 2, nil }, tiercache.Tags("t"))
		if v != 2 || err != nil {
			t.Errorf("a load after it: got %v, %v", v, err)
		}
		wantGet(t, a, "loaded", 2)
	})
}

// calls is how often the server ran a command, by INFO commandstats.
func calls(t *testing.T, n *harness.Node, command string) int {
	t.Helper()
	reply, err := n.Do(t.Context(), "INFO", "commandstats")
	ok(t, err)
	found := regexp.MustCompile(`cmdstat_` + command + `:calls=(\d+)`).FindStringSubmatch(fmt.Sprint(reply))
	if found == nil {
		return 0
	}
	count, err := strconv.Atoi(found[1])
	ok(t, err)
	return count
}

// TestTagPressure: a server that is full drops values, tags' keys and the state as
// it likes. No value is read after its tag was invalidated.
func TestTagPressure(t *testing.T) {
	t.Parallel()
	for i, policy := range []string{"allkeys-lru", "allkeys-random", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			c := clients[i%len(clients)]
			nodes := servers(t, 1, harness.Options{Args: []string{"--maxmemory", "6mb", "--maxmemory-policy", policy}})
			a, b := open[string](t, c, nodes, nil), open[string](t, c, nodes, &tiercache.Options{LocalBytes: -1})
			synced(t, a)
			const keys, tags = 400, 20
			pad := string(make([]byte, 20_000))
			tag := func(i int) string { return fmt.Sprint("t", i%tags) }
			hits := 0
			for round := range 3 {
				for i := range keys {
					a.Set(t.Context(), fmt.Sprint("k", i), fmt.Sprint(round)+pad, tiercache.Tags(tag(i)))
				}
				for n := range tags {
					if n%2 == round%2 {
						mustInvalidate(t, a, tag(n))
					}
				}
				for i := range keys {
					for which, c := range []*tiercache.Cache[string]{a, b} {
						v, err := c.Get(t.Context(), fmt.Sprint("k", i))
						if err == nil && i%tags%2 == round%2 {
							t.Fatalf("round %d, cache %d: k%d is there, whose tag %s was invalidated: %.4q", round, which, i, tag(i), v)
						}
						if err == nil {
							hits++
						}
					}
				}
			}
			t.Logf("%d hits", hits)
			if hits == 0 {
				t.Error("nothing was ever there: the test shows nothing")
			}
		})
	}
}

// TestTagWhileCutOff: a tag that is invalidated while a shard is frozen, before or
// after that is found out, holds when it is back with all that it held.
func TestTagWhileCutOff(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		for name, found := range map[string]bool{"at once": false, "when it is out": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tr := newTrial(t, c, harness.Options{})
				key := tr.key(0, 1)
				mustSet(t, tr.caches[0], key, 1, tiercache.Tags("t"))
				for _, c := range tr.caches {
					within(t, bound, "both read it", func() bool { v, err := c.Get(t.Context(), key); return err == nil && v == 1 })
				}
				tr.freeze(0)
				if found {
					tr.out(0)
				}
				if found {
					mustInvalidate(t, tr.caches[1], "t")
				} else {
					err := tr.caches[1].InvalidateTag(t.Context(), "t")
					if failed := new(tiercache.ShardError); !errors.As(err, &failed) {
						t.Errorf("got %v, want an error of the frozen shard while nobody knows that it is out", err)
					}
				}
				tr.out(0)
				mustSet(t, tr.caches[0], key, 2, tiercache.Tags("t"))
				tr.thaw(0)
				tr.out()
				for range 50 {
					tr.never(key, 1)
					time.Sleep(2 * time.Millisecond)
				}
				mustSet(t, tr.caches[0], key, 3, tiercache.Tags("t"))
				within(t, bound, "both read what is set after it", func() bool {
					for _, c := range tr.caches {
						if v, err := c.Get(t.Context(), key); err != nil || v != 3 {
							return false
						}
					}
					return true
				})
			})
		}
	})
}
