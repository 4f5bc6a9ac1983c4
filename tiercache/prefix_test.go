package tiercache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

func TestDeletePrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := shards(3)
		a, b := open[int](t, s, nil), open[int](t, s, nil)
		other := open[int](t, s, &tiercache.Options{Namespace: "tc2"})
		synced(t, a, b, other)
		names := []string{`user[1]*?\:`, "user:", "user", ""}
		for _, name := range names {
			for i := range 1200 {
				mustSet(t, a, fmt.Sprint(name, "#", i), i)
			}
		}
		mustSet(t, other, "user:#1", 1)
		synctest.Wait()
		want := func(name string, there bool) {
			t.Helper()
			synctest.Wait()
			for _, c := range []*tiercache.Cache[int]{a, b} {
				for i := range 1200 {
					if key := fmt.Sprint(name, "#", i); !there {
						wantNone(t, c, key)
					} else if i%10 == 0 { // how many are gone DeletePrefix returns
						wantGet(t, c, key, i)
					}
				}
			}
		}
		for _, name := range names {
			want(name, true)
		}
		for n, name := range names[:2] {
			deleted, err := b.DeletePrefix(t.Context(), name)
			if err != nil || deleted != 1200 {
				t.Errorf("%q: got %d, %v, want 1200", name, deleted, err)
			}
			for i, name := range names {
				want(name, i > n)
			}
			time.Sleep(time.Second)
		}
		if deleted, err := a.DeletePrefix(t.Context(), ""); err != nil || deleted != 2400 {
			t.Errorf("everything: got %d, %v, want 2400", deleted, err)
		}
		want("", false)
		wantGet(t, other, "user:#1", 1)
	})
}

// TestDeletePrefixInL1: what a shard evicted, and processes still hold, is gone too;
// a load from before is not stored.
func TestDeletePrefixInL1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard told
		shard := memory.New(nil)
		a, b := open[int](t, one(shard), nil), open[int](t, one(shard), &tiercache.Options{OnEvent: heard.add})
		synced(t, a, b)
		mustSet(t, a, "k", 1)
		synctest.Wait()
		wantGet(t, b, "k", 1)
		do(t, shard, "DEL", "tc:k") // as an eviction
		wantGet(t, a, "k", 1)
		wantGet(t, b, "k", 1)
		loaded := make(chan error)
		go func() {
			_, err := b.GetOrLoad(context.Background(), "k2", func(context.Context) (int, error) { time.Sleep(time.Second); return 1, nil })
			loaded <- err
		}()
		time.Sleep(500 * time.Millisecond)
		heard.take()
		if deleted, err := a.DeletePrefix(t.Context(), "k"); deleted != 1 || err != nil { // the marker
			t.Errorf("got %d, %v", deleted, err)
		}
		synctest.Wait()
		if err := <-loaded; err != nil {
			t.Error(err)
		}
		for _, c := range []*tiercache.Cache[int]{a, b} {
			wantNone(t, c, "k")
			wantNone(t, c, "k2")
		}
		for _, e := range heard.take() {
			if e.Kind == tiercache.EventLost || e.Kind == tiercache.EventGap || e.Kind == tiercache.EventEpoch {
				t.Errorf("a clear was told as trouble: %+v", e)
			}
		}
		synced(t, a, b)
		mustSet(t, a, "k", 2)
		synctest.Wait()
		wantGet(t, b, "k", 2)
		before := b.Stats().ShardHits
		wantGet(t, b, "k", 2)
		if b.Stats().ShardHits != before {
			t.Error("L1 takes nothing after a clear")
		}
	})
}

func TestDeletePrefixEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		c := open[int](t, map[string]tiercache.Shard{"a": shard, "b": network}, nil)
		synced(t, c)
		for i := range 100 {
			mustSet(t, c, fmt.Sprint("k", i), i)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if deleted, err := c.DeletePrefix(ctx, ""); deleted != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: got %d, %v", deleted, err)
		}
		network.cut.Store(true)
		_, err := c.DeletePrefix(t.Context(), "")
		var failed *tiercache.ShardError
		if !errors.As(err, &failed) || failed.Shard != "b" {
			t.Errorf("one shard cut off: got %v, want a *ShardError of b", err)
		}
		network.cut.Store(false)
		c.Close()
		if _, err := c.DeletePrefix(t.Context(), ""); !errors.Is(err, tiercache.ErrClosed) {
			t.Errorf("closed: got %v", err)
		}
	})
}
