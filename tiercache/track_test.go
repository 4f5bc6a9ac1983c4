package tiercache_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

var tracking = &tiercache.Options{Tracking: true}

func do(t testing.TB, s tiercache.Shard, cmd ...string) {
	t.Helper()
	if _, err := s.Do(t.Context(), cmd); err != nil {
		t.Fatal(err)
	}
}

// TestTracking: what others do to a key is seen at once, and a value that was
// read before does not come back into L1 after it.
func TestTracking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		var slow atomic.Int64
		network := &faulty{Shard: shard, delay: func() time.Duration { return time.Duration(slow.Load()) }}
		a, b := open[int](t, one(network), tracking), open[int](t, one(shard), nil)
		synced(t, a, b)
		held := func(want bool) {
			t.Helper()
			before := a.Stats().LocalHits
			a.Get(t.Context(), "k")
			if got := a.Stats().LocalHits > before; got != want {
				t.Errorf("in L1: got %v, want %v", got, want)
			}
		}
		later := func() { // a bubble's clock stands still: what is read at the time of a change may be from before it
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		take := func() {
			t.Helper()
			mustSet(t, b, "k", 1)
			later()
			wantGet(t, a, "k", 1)
			held(true)
		}
		for _, cmd := range [][]string{{"DEL", "tc:k"}, {"SET", "tc:k", "foreign"}, {"FLUSHALL"}} {
			take()
			do(t, shard, cmd...)
			synctest.Wait()
			wantNone(t, a, "k")
			time.Sleep(bound)
		}

		take()
		time.Sleep(10 * time.Minute)
		do(t, shard, "EXISTS", "tc:k") // which ends its life
		synctest.Wait()
		held(false)

		// The reply is held up until the change has been told.
		take()
		do(t, shard, "PEXPIRE", "tc:k", "10000")
		later()
		slow.Store(int64(10 * time.Millisecond))
		read := make(chan error)
		go func() {
			v, err := a.Get(context.Background(), "k")
			if err == nil && v != 1 {
				err = fmt.Errorf("got %d, want 1", v)
			}
			read <- err
		}()
		time.Sleep(15 * time.Millisecond) // it has been read, and is on its way back
		do(t, shard, "DEL", "tc:k")
		if err := <-read; err != nil {
			t.Error(err)
		}
		slow.Store(0)
		wantNone(t, a, "k")
	})
}

// TestTrackingNeeded shows that L1 does not see a foreign DEL without tracking.
func TestTrackingNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a := open[int](t, one(shard), nil)
		synced(t, a)
		mustSet(t, a, "k", 1)
		do(t, shard, "DEL", "tc:k")
		time.Sleep(bound)
		wantGet(t, a, "k", 1)
	})
}

// TestTrackingLost: changes that were not told make no old value, in the bound.
func TestTrackingLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		a := open[int](t, one(network), tracking)
		for i := range 20 {
			synced(t, a)
			mustSet(t, a, "k", i)
			synctest.Wait()
			wantGet(t, a, "k", i)
			network.deaf.Store(true)
			do(t, shard, "DEL", "tc:k")
			time.Sleep(bound)
			wantNone(t, a, "k")
			network.deaf.Store(false)
		}
	})
}

// TestTrackingOwnWrites: a write of one's own ends with the value, whichever
// announcement comes first.
func TestTrackingOwnWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a := open[int](t, one(shard), tracking)
		synced(t, a)
		for i := range 100 {
			mustSet(t, a, "k", i)
			wantGet(t, a, "k", i)
			synctest.Wait()
			wantGet(t, a, "k", i)
			v, err := a.GetOrLoad(t.Context(), fmt.Sprint("l", i), func(context.Context) (int, error) { return i, nil })
			if v != i || err != nil {
				t.Fatalf("got %v, %v, want %d", v, err, i)
			}
		}
		time.Sleep(time.Millisecond)
		wantGet(t, a, "k", 99)
		before := a.Stats()
		for range 100 {
			wantGet(t, a, "k", 99)
		}
		if after := a.Stats(); after.ShardHits != before.ShardHits {
			t.Errorf("100 reads of a key that nobody changes: %d of the shard, want 0", after.ShardHits-before.ShardHits)
		}
	})
}

// plainShard hides that a shard is a Tracker.
type plainShard struct{ tiercache.Shard }

func TestTrackingRefused(t *testing.T) {
	for name, try := range map[string]func() (*tiercache.Cache[int], error){
		"no Tracker": func() (*tiercache.Cache[int], error) {
			return tiercache.New[int](one(plainShard{memory.New(nil)}), tracking)
		},
		"without L1": func() (*tiercache.Cache[int], error) {
			return tiercache.New[int](one(memory.New(nil)), &tiercache.Options{Tracking: true, LocalBytes: -1})
		},
	} {
		if c, err := try(); err == nil {
			c.Close()
			t.Errorf("%s: got no error", name)
		}
	}
}
