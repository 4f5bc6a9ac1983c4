package tier

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// TestUnreadableLive: a value that a process cannot read is loaded once, and
// replaced, unless it was written meanwhile.
func TestUnreadableLive(t *testing.T) {
	eachClient(t, func(t *testing.T, c client) {
		nodes := servers(t, 1, harness.Options{})
		a, b := open[int](t, c, nodes, nil), open[int](t, c, nodes, &tiercache.Options{LocalBytes: -1})
		synced(t, a)
		spoil := func(key string) {
			mustSet(t, b, key, 1)
			_, err := nodes[0].Do(t.Context(), "SETRANGE", "tc:"+key, "36", "\x63")
			ok(t, err)
			within(t, bound, "a has heard of it", func() bool { _, err := a.Get(t.Context(), key); return err != nil })
		}
		for _, key := range []string{"k", "written"} {
			spoil(key)
			loads := 0
			for range 3 {
				_, err := a.GetOrLoad(t.Context(), key, func(context.Context) (int, error) {
					loads++
					if key == "written" {
						mustSet(t, b, key, 3)
					}
					return 2, nil
				})
				ok(t, err)
			}
			if loads != 1 {
				t.Errorf("%s: got %d loads, want 1", key, loads)
			}
		}
		wantGet(t, b, "k", 2)
		wantGet(t, b, "written", 3)
	})
}

var errDown = errors.New("the source is down")

// TestOneLoadLive: ten thousand who miss a key at one time are one load.
func TestOneLoadLive(t *testing.T) {
	eachClient(t, func(t *testing.T, c client) {
		cache := open[int](t, c, servers(t, 1, harness.Options{}), nil)
		synced(t, cache)
		const callers = 10_000
		var loads atomic.Int64
		var ready, done sync.WaitGroup
		gate := make(chan struct{})
		ready.Add(callers)
		for range callers {
			done.Go(func() {
				ready.Done()
				<-gate
				v, err := cache.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) {
					loads.Add(1)
					time.Sleep(20 * time.Millisecond) // who comes after the load finds the value
					return 1, nil
				})
				if v != 1 || err != nil {
					t.Errorf("got %v, %v", v, err)
				}
			})
		}
		ready.Wait()
		close(gate)
		done.Wait()
		if n := loads.Load(); n != 1 {
			t.Errorf("got %d loads, want 1", n)
		}
	})
}

// TestStaleLive: while loads fail or take long, the value of before is given, with
// the shard and without it, until it is deleted.
func TestStaleLive(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		n := servers(t, 1, harness.Options{})[0]
		opts := &tiercache.Options{TTL: 300 * time.Millisecond, Jitter: -1, StaleFor: time.Minute, SoftTimeout: 50 * time.Millisecond}
		a, b := open[int](t, c, []*harness.Node{n}, opts), open[int](t, c, []*harness.Node{n}, nil)
		synced(t, a, b)
		var down atomic.Bool
		hang := make(chan struct{})
		var over sync.Once
		resume := func() { over.Do(func() { close(hang) }) }
		defer resume()
		ask := func(key string, slow bool) (int, error) {
			return a.GetOrLoad(t.Context(), key, func(ctx context.Context) (int, error) {
				switch {
				case slow:
					<-hang
				case down.Load():
					return 0, errDown
				}
				return 1, nil
			})
		}
		want := func(what, key string, slow bool) {
			t.Helper()
			start := time.Now()
			v, err := ask(key, slow)
			if took := time.Since(start); v != 1 || err != nil || took > 5*time.Second {
				t.Fatalf("%s: got %v, %v after %v, want the value of before", what, v, err, took)
			}
		}
		for _, key := range []string{"failing", "slow"} {
			want("first", key, false)
			within(t, time.Minute, "its life ends", func() bool { _, err := a.Get(t.Context(), key); return errors.Is(err, tiercache.ErrNotFound) })
		}
		down.Store(true)
		want("a load fails", "failing", false)
		want("a load hangs", "slow", true)
		ok(t, n.Freeze())
		for frozen := time.Now(); time.Since(frozen) < 2*bound; {
			want("the shard is frozen, and loads fail", "failing", false)
			want("the shard is frozen, and loads hang", "slow", true)
			time.Sleep(20 * time.Millisecond)
		}
		ok(t, n.Thaw())
		resume()
		within(t, time.Minute, "b can delete", func() bool { return b.Delete(t.Context(), "failing") == nil })
		within(t, bound+time.Second, "what was deleted is not given", func() bool { _, err := ask("failing", false); return errors.Is(err, errDown) })
		down.Store(false)
		within(t, time.Minute, "the source is asked again", func() bool { v, err := ask("failing", false); return v == 1 && err == nil })
	})
}

// TestRefreshLive: a value is loaded anew before its end, once for two processes,
// and what is deleted meanwhile stays so.
func TestRefreshLive(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		nodes := servers(t, 1, harness.Options{})
		opts := &tiercache.Options{TTL: 4 * time.Second, Jitter: -1, RefreshAhead: 2 * time.Second}
		a, b := open[int](t, c, nodes, opts), open[int](t, c, nodes, opts)
		synced(t, a, b)
		var loads atomic.Int64
		hold := make(chan struct{}, 100)
		held := make(chan struct{}, 100)
		load := func(context.Context) (int, error) {
			n := int(loads.Add(1))
			if n == 3 {
				held <- struct{}{}
				<-hold
			}
			return n, nil
		}
		ask := func(c *tiercache.Cache[int]) int {
			v, err := c.GetOrLoad(t.Context(), "k", load)
			ok(t, err)
			return v
		}
		ask(a)
		ask(b)
		within(t, time.Minute, "it is loaded again", func() bool { return ask(a) == 2 && ask(b) == 2 })
		if n, began := loads.Load(), a.Stats().Refreshes+b.Stats().Refreshes; n != 2 || began != 1 {
			t.Errorf("got %d loads, %d of them ahead; want 2 and 1", n, began)
		}
		within(t, time.Minute, "and again", func() bool {
			select {
			case <-held:
				return true
			default:
				return ask(a) == 2 && ask(b) > 9
			}
		})
		mustDelete(t, b, "k")
		close(hold)
		within(t, time.Minute, "that fill is refused", func() bool { return a.Stats().RefusedFills+b.Stats().RefusedFills == 1 })
		for _, c := range []*tiercache.Cache[int]{a, b} {
			within(t, bound, "it stays deleted", func() bool { _, err := c.Get(t.Context(), "k"); return errors.Is(err, tiercache.ErrNotFound) })
		}
	})
}
