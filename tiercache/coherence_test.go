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

// A mechanism is tested twice: with it, and without, where the test must fail.
func withAndWithout(t *testing.T, off tiercache.Mechanisms, old func(t *testing.T, off tiercache.Mechanisms) bool) {
	t.Helper()
	t.Run("with", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if old(t, tiercache.Mechanisms{}) {
				t.Error("an old value was read")
			}
		})
	})
	t.Run("without", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if !old(t, off) {
				t.Error("no old value was read: the test does not see what the mechanism is for")
			}
		})
	})
}

// bound is Options' own: two heartbeats.
const bound = 2 * time.Second

// reads reports whether c gives the value.
func reads[V comparable](t *testing.T, c *tiercache.Cache[V], key string, value V) bool {
	t.Helper()
	got, err := c.Get(t.Context(), key)
	return err == nil && got == value
}

// TestLostNotice: a notice that the network swallows is missed within the bound.
func TestLostNotice(t *testing.T) {
	withAndWithout(t, tiercache.Mechanisms{Sequence: true}, func(t *testing.T, off tiercache.Mechanisms) bool {
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		a, b := open[int](t, one(shard), nil), openWithout[int](t, one(network), nil, off)
		for i := range 50 {
			synced(t, a, b)
			mustSet(t, a, "k", 2*i)
			synctest.Wait()
			wantGet(t, b, "k", 2*i)
			network.swallow.Store(true)
			mustSet(t, a, "k", 2*i+1)
			synctest.Wait()
			network.swallow.Store(false)
			if i%2 == 0 {
				mustSet(t, a, "other", i) // the next notice tells, too
			}
			time.Sleep(bound)
			if reads(t, b, "k", 2*i) {
				return true
			}
		}
		return false
	})
}

// TestCutOff: a process that its shard cannot reach stops trusting what it
// holds, whatever it hears.
func TestCutOff(t *testing.T) {
	withAndWithout(t, tiercache.Mechanisms{Trust: true}, func(t *testing.T, off tiercache.Mechanisms) bool {
		off.Health = true // which would take the shard out
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		a, b := open[int](t, one(shard), nil), openWithout[int](t, one(network), nil, off)
		synced(t, a, b)
		mustSet(t, a, "k", 1)
		wantGet(t, b, "k", 1)
		network.cut.Store(true)
		mustSet(t, a, "k", 2)
		time.Sleep(bound)
		if reads(t, b, "k", 1) {
			return true
		}
		network.cut.Store(false)
		time.Sleep(bound)
		if !off.Trust {
			wantGet(t, b, "k", 2)
		}
		return false
	})
}

// TestSilentListener: commands pass, but the subscription delivers nothing, not
// even answers to pings.
func TestSilentListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		a, b := open[int](t, one(shard), nil), open[int](t, one(network), nil)
		for i := range 50 {
			network.deaf.Store(false)
			synced(t, a, b)
			mustSet(t, a, "k", 2*i)
			synctest.Wait()
			wantGet(t, b, "k", 2*i)
			network.deaf.Store(true)
			mustSet(t, a, "k", 2*i+1)
			time.Sleep(bound)
			wantGet(t, b, "k", 2*i+1)
		}
	})
}

// TestOldSnapshot: a shard that comes back with older data gives none of it.
func TestOldSnapshot(t *testing.T) {
	withAndWithout(t, tiercache.Mechanisms{Epoch: true}, func(t *testing.T, off tiercache.Mechanisms) bool {
		shard := memory.New(nil)
		a, b := openWithout[int](t, one(shard), nil, off), openWithout[int](t, one(shard), &tiercache.Options{LocalBytes: -1}, off)
		synced(t, a)
		mustSet(t, a, "k", 1)
		shard.Save()
		mustSet(t, a, "k", 2)
		time.Sleep(10 * time.Second)
		shard.Restart()
		synctest.Wait()
		time.Sleep(bound)
		return reads(t, b, "k", 1) || reads(t, a, "k", 1)
	})
}

// TestOldSnapshotAtOnce is read before any heartbeat could find the other run id.
func TestOldSnapshotAtOnce(t *testing.T) {
	withAndWithout(t, tiercache.Mechanisms{Verify: true}, func(t *testing.T, off tiercache.Mechanisms) bool {
		shard := memory.New(nil)
		// One that is never told to listen, as if its subscription had not ended yet.
		network := &faulty{Shard: shard}
		a, b := open[int](t, one(shard), nil), openWithout[int](t, one(network), nil, off)
		synced(t, a, b)
		mustSet(t, a, "k", 1)
		shard.Save()
		mustSet(t, a, "k", 2)
		a.Close()
		time.Sleep(10*time.Second + 500*time.Millisecond)
		shard.Restart()
		return reads(t, b, "k", 1)
	})
}

// TestYoungSnapshot: a shard that comes back with data of a moment ago is found
// out when the subscription, which ended with it, is there again.
func TestYoungSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[int](t, one(shard), nil), open[int](t, one(shard), &tiercache.Options{LocalBytes: -1})
		synced(t, a, b)
		mustSet(t, a, "k", 1)
		shard.Save()
		mustSet(t, a, "k", 2)
		shard.Restart()
		time.Sleep(100 * time.Millisecond)
		wantNone(t, b, "k")
		wantNone(t, a, "k")
	})
}

// TestVerifiedEachHeartbeat: a read never has to ask first whether the server is
// still the same one, while heartbeats go on.
func TestVerifiedEachHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		a := open[int](t, one(network), &tiercache.Options{LocalBytes: -1})
		synced(t, a)
		mustSet(t, a, "k", 1)
		time.Sleep(500 * time.Millisecond)
		for range 100 {
			time.Sleep(time.Second)
			before := network.commands.Load()
			wantGet(t, a, "k", 1)
			if n := network.commands.Load() - before; n != 1 {
				t.Fatalf("a read took %d commands, want 1", n)
			}
		}
	})
}

// TestFlushed: after FLUSHALL nothing from before it is given, nor filled in.
func TestFlushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[int](t, one(shard), nil), open[int](t, one(shard), nil)
		synced(t, a, b)
		mustSet(t, a, "k", 1)
		wantGet(t, b, "k", 1)
		if _, err := shard.Do(t.Context(), []string{"FLUSHALL"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(bound)
		wantNone(t, a, "k")
		wantNone(t, b, "k")
		mustSet(t, b, "k", 2)
		synctest.Wait()
		wantGet(t, a, "k", 2)
		if s := a.Stats().Shards[0]; s.Epochs == 0 {
			t.Errorf("got no change of epoch: %+v", s)
		}
	})
}

// TestStateEvicted: the state is one key, which a server under memory pressure
// may drop while values stay. They are misses then.
func TestStateEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a := open[int](t, one(shard), &tiercache.Options{LocalBytes: -1})
		for i := range 20 {
			mustSet(t, a, "k", i)
			wantGet(t, a, "k", i)
			time.Sleep(time.Millisecond) // a bubble's clock stands still, and an epoch is a time
			if _, err := shard.Do(t.Context(), []string{"DEL", "tc#state"}); err != nil {
				t.Fatal(err)
			}
			wantNone(t, a, "k")
			if i%2 == 0 {
				time.Sleep(bound) // a heartbeat, or the next write, begins a new epoch
			}
			wantNone(t, a, "k")
		}
	})
}

// TestLateSet: a Set that timed out at a frozen shard does nothing when it thaws.
func TestLateSet(t *testing.T) {
	withAndWithout(t, tiercache.Mechanisms{Deadline: true}, func(t *testing.T, off tiercache.Mechanisms) bool {
		off.Notes = true // which would delete what came late
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		a, b := openWithout[int](t, one(network), nil, off), open[int](t, one(shard), nil)
		synced(t, a, b)
		mustSet(t, a, "k", 1)
		frozen := &gate{make(chan struct{})}
		network.freeze.Store(frozen)
		err := a.Set(t.Context(), "k", 2)
		var failed *tiercache.ShardError
		if !errors.As(err, &failed) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Set at a frozen shard: got %v, want a *ShardError with DeadlineExceeded", err)
		}
		mustSet(t, b, "k", 3) // through the network, a frozen server would not
		time.Sleep(time.Millisecond)
		network.freeze.Store(nil)
		frozen.open()
		synctest.Wait()
		return reads(t, b, "k", 2)
	})
}

// TestLongLoad: a load of 30 s is not stored if the key was deleted, set with a
// short life, or evicted meanwhile.
func TestLongLoad(t *testing.T) {
	for name, meanwhile := range map[string]func(t *testing.T, shard *memory.Shard, c *tiercache.Cache[int]){
		"delete": func(t *testing.T, _ *memory.Shard, c *tiercache.Cache[int]) {
			if err := c.Delete(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		},
		"set for 100 ms": func(t *testing.T, _ *memory.Shard, c *tiercache.Cache[int]) {
			mustSet(t, c, "k", 2, tiercache.TTL(100*time.Millisecond))
		},
		"eviction": func(t *testing.T, shard *memory.Shard, _ *tiercache.Cache[int]) {
			if _, err := shard.Do(t.Context(), []string{"DEL", "tc:k"}); err != nil {
				t.Error(err)
			}
		},
		"restart": func(_ *testing.T, shard *memory.Shard, _ *tiercache.Cache[int]) { shard.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			withAndWithout(t, tiercache.Mechanisms{Marker: true}, func(t *testing.T, off tiercache.Mechanisms) bool {
				shard := memory.New(nil)
				opts := &tiercache.Options{LoadTimeout: time.Minute}
				a, b := openWithout[int](t, one(shard), opts, off), open[int](t, one(shard), opts)
				synced(t, a, b)
				loaded := make(chan error, 1)
				go func() {
					v, err := a.GetOrLoad(context.Background(), "k", func(context.Context) (int, error) {
						time.Sleep(30 * time.Second)
						return 1, nil
					})
					if err == nil && v != 1 {
						err = fmt.Errorf("got %d, want 1", v)
					}
					loaded <- err
				}()
				time.Sleep(10 * time.Second)
				meanwhile(t, shard, b)
				if err := <-loaded; err != nil {
					t.Errorf("the load: %v", err)
				}
				synctest.Wait()
				return reads(t, b, "k", 1) || reads(t, a, "k", 1)
			})
		})
	}
}

// TestLoadAfterDelete: who asks after a Delete does not get what a load from
// before it returns, in the process that deleted and in others.
func TestLoadAfterDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[int](t, one(shard), nil), open[int](t, one(shard), nil)
		synced(t, a, b)
		for _, deleter := range []*tiercache.Cache[int]{a, b} {
			first := make(chan int, 1)
			go func() {
				v, _ := a.GetOrLoad(context.Background(), "k", func(context.Context) (int, error) { time.Sleep(10 * time.Second); return 1, nil })
				first <- v
			}()
			time.Sleep(time.Second)
			if err := deleter.Delete(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			v, err := a.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { return 2, nil })
			if err != nil || v != 2 {
				t.Errorf("after the Delete: got %d, %v, want 2", v, err)
			}
			if v := <-first; v != 1 {
				t.Errorf("the load from before: got %d, want 1", v)
			}
			wantGet(t, a, "k", 2)
			wantGet(t, b, "k", 2)
			if err := a.Delete(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
	})
}
