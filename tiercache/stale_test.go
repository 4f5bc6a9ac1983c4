package tiercache_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// A source is what stands behind a cache.
type source struct {
	value atomic.Int64
	takes atomic.Int64 // ns
	down  atomic.Bool
	loads atomic.Int64
}

var errDown = errors.New("the source is down")

func (s *source) load(ctx context.Context) (int, error) {
	s.loads.Add(1)
	v, down := s.value.Load(), s.down.Load()
	select {
	case <-time.After(time.Duration(s.takes.Load())):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if down {
		return 0, errDown
	}
	return int(v), nil
}

func wantLoad(t *testing.T, c *tiercache.Cache[int], s *source, want int) {
	t.Helper()
	if v, err := c.GetOrLoad(t.Context(), "k", s.load); v != want || err != nil {
		t.Fatalf("got %v, %v, want %d", v, err, want)
	}
}

func wantDown(t *testing.T, c *tiercache.Cache[int], s *source) {
	t.Helper()
	if v, err := c.GetOrLoad(t.Context(), "k", s.load); !errors.Is(err, errDown) {
		t.Fatalf("got %v, %v, want the loader's error", v, err)
	}
}

var staleOptions = tiercache.Options{TTL: 10 * time.Second, Jitter: -1, StaleFor: time.Minute, LoadTimeout: 20 * time.Second}

// TestStaleOnError: while loads fail, the value of before is given, to its maximum
// age and no further, and the source is asked once a heartbeat.
func TestStaleOnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := staleOptions
		c := open[int](t, one(memory.New(nil)), &opts)
		synced(t, c)
		var s source
		s.value.Store(1)
		wantLoad(t, c, &s, 1)
		end := time.Now().Add(10*time.Second + time.Minute)
		s.down.Store(true)
		time.Sleep(11 * time.Second)
		s.loads.Store(0)
		for time.Until(end) > 10*time.Millisecond {
			wantLoad(t, c, &s, 1)
			if many, err := c.GetMany(t.Context(), []string{"k"}, func(ctx context.Context, _ []string) (map[string]int, error) {
				v, err := s.load(ctx)
				return map[string]int{"k": v}, err
			}); err != nil || many["k"] != 1 {
				t.Fatalf("GetMany: got %v, %v", many, err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := s.loads.Load(); n < 55 || n > 61 {
			t.Errorf("in a minute: got %d loads, want one a second", n)
		}
		if _, err := c.Get(t.Context(), "k"); !errors.Is(err, tiercache.ErrNotFound) {
			t.Errorf("Get: got %v, want ErrNotFound: it loads nothing", err)
		}
		if n := c.Stats().Stale; n == 0 {
			t.Error("Stats counts none")
		}
		time.Sleep(20 * time.Millisecond)
		wantDown(t, c, &s)
		s.down.Store(false)
		s.value.Store(2)
		wantLoad(t, c, &s, 2)
	})
}

// TestStaleBack: when the source is back, the next load after the pause brings
// the new value.
func TestStaleBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := staleOptions
		c := open[int](t, one(memory.New(nil)), &opts)
		synced(t, c)
		var s source
		wantLoad(t, c, &s, 0)
		time.Sleep(11 * time.Second)
		s.down.Store(true)
		wantLoad(t, c, &s, 0)
		s.down.Store(false)
		s.value.Store(2)
		wantLoad(t, c, &s, 0)
		time.Sleep(1001 * time.Millisecond)
		wantLoad(t, c, &s, 2)
	})
}

// TestStaleIsNoError: what the loader says does not exist is not replaced by what
// did.
func TestStaleIsNoError(t *testing.T) {
	for name, negative := range map[string]time.Duration{"remembered": 0, "not remembered": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := staleOptions
				opts.NegativeTTL = negative
				c := open[int](t, one(memory.New(nil)), &opts)
				synced(t, c)
				var s source
				wantLoad(t, c, &s, 0)
				time.Sleep(11 * time.Second)
				if _, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { return 0, tiercache.ErrNotFound }); !errors.Is(err, tiercache.ErrNotFound) {
					t.Errorf("got %v, want ErrNotFound", err)
				}
				time.Sleep(11 * time.Second)
				s.down.Store(true)
				wantDown(t, c, &s)
			})
		})
	}
}

// TestStaleLoaders: a loader that panics, exits or hangs has failed, too.
func TestStaleLoaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := staleOptions
		c := open[int](t, one(memory.New(nil)), &opts)
		synced(t, c)
		var s source
		s.value.Store(5)
		wantLoad(t, c, &s, 5)
		time.Sleep(11 * time.Second)
		hang := make(chan struct{})
		defer close(hang)
		for name, load := range map[string]tiercache.Loader[int]{
			"panics": func(context.Context) (int, error) { panic("ouch") },
			"hangs":  func(context.Context) (int, error) { <-hang; return 0, nil },
		} {
			if v, err := c.GetOrLoad(t.Context(), "k", load); v != 5 || err != nil {
				t.Errorf("a loader that %s: got %v, %v, want the value of before", name, v, err)
			}
			time.Sleep(1100 * time.Millisecond)
		}
		if n := c.Stats().LoadErrors; n != 2 {
			t.Errorf("got %d failed loads, want 2", n)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.GetOrLoad(t.Context(), "k", s.load); !errors.Is(err, tiercache.ErrClosed) {
			t.Errorf("after Close: got %v, want ErrClosed", err)
		}
	})
}

// TestStaleWritten: a value that was overwritten, deleted or flushed is not given,
// by whom ever that was done, though loads fail.
func TestStaleWritten(t *testing.T) {
	for name, happen := range map[string]func(t *testing.T, shard *memory.Shard, a, b *tiercache.Cache[int]) error{
		"deleted here": func(t *testing.T, _ *memory.Shard, a, _ *tiercache.Cache[int]) error {
			return a.Delete(t.Context(), "k")
		},
		"deleted there": func(t *testing.T, _ *memory.Shard, _, b *tiercache.Cache[int]) error {
			return b.Delete(t.Context(), "k")
		},
		"set there, for a moment": func(t *testing.T, _ *memory.Shard, _, b *tiercache.Cache[int]) error {
			return b.Set(t.Context(), "k", 9, tiercache.TTL(time.Millisecond))
		},
		"flushed": func(t *testing.T, shard *memory.Shard, _, _ *tiercache.Cache[int]) error {
			_, err := shard.Do(t.Context(), []string{"FLUSHALL"})
			return err
		},
		"restarted": func(_ *testing.T, shard *memory.Shard, _, _ *tiercache.Cache[int]) error {
			shard.Restart()
			return nil
		},
	} {
		for _, meanwhile := range []bool{false, true} {
			when := ""
			if meanwhile {
				when = " during the load"
			}
			t.Run(name+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shard := memory.New(nil)
					opts := staleOptions
					a, b := open[int](t, one(shard), &opts), open[int](t, one(shard), nil)
					synced(t, a, b)
					var s source
					wantLoad(t, a, &s, 0)
					time.Sleep(11 * time.Second)
					s.down.Store(true)
					wantLoad(t, a, &s, 0)
					time.Sleep(bound)
					s.takes.Store(int64(5 * time.Second))
					done := make(chan error, 1)
					ask := func() { _, err := a.GetOrLoad(context.Background(), "k", s.load); done <- err }
					if meanwhile {
						go ask()
						time.Sleep(time.Second)
					}
					if err := happen(t, shard, a, b); err != nil {
						t.Fatal(err)
					}
					time.Sleep(bound)
					if !meanwhile {
						go ask()
					}
					if err := <-done; !errors.Is(err, errDown) {
						t.Errorf("got %v, want the loader's error", err)
					}
				})
			})
		}
	}
}

// TestStaleMissed: a process that did not hear of a write, but whose shard answers,
// does not give what it held.
func TestStaleMissed(t *testing.T) {
	for name, disturb := range map[string]func(f *faulty, on bool){
		"deaf":    func(f *faulty, on bool) { f.deaf.Store(on) },
		"swallow": func(f *faulty, on bool) { f.swallow.Store(on) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shard := memory.New(nil)
				network := &faulty{Shard: shard}
				opts := staleOptions
				a, b := open[int](t, one(network), &opts), open[int](t, one(shard), nil)
				synced(t, a, b)
				var s source
				wantLoad(t, a, &s, 0)
				time.Sleep(11 * time.Second)
				s.down.Store(true)
				wantLoad(t, a, &s, 0)
				disturb(network, true)
				if err := b.Delete(t.Context(), "k"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(bound)
				wantDown(t, a, &s)
				disturb(network, false)
				time.Sleep(bound)
				wantDown(t, a, &s)
			})
		})
	}
}

// TestStaleTracked: with Tracking, L1 hears that a value ended, which is no reason not
// to give it; that it was deleted before is.
func TestStaleTracked(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprint("deleted ", deleted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shard := memory.New(nil)
				opts := staleOptions
				opts.Tracking = true
				c := open[int](t, one(shard), &opts)
				synced(t, c)
				var s source
				wantLoad(t, c, &s, 0)
				synctest.Wait()
				time.Sleep(time.Millisecond)
				wantLoad(t, c, &s, 0)
				if deleted {
					time.Sleep(time.Second)
					do(t, shard, "DEL", "tc:k")
				}
				time.Sleep(11 * time.Second)
				do(t, shard, "GET", "tc:k") // at the latest now the shard notices that it ended
				synctest.Wait()
				s.down.Store(true)
				if deleted {
					wantDown(t, c, &s)
				} else {
					wantLoad(t, c, &s, 0)
				}
			})
		})
	}
}

// TestStaleAlone: while no shard answers and loads fail, the value of before is
// given up to its maximum age; once the shard answers, what was written meanwhile
// counts.
func TestStaleAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		opts := staleOptions
		a, b := open[int](t, one(network), &opts), open[int](t, one(shard), nil)
		synced(t, a, b)
		var s source
		s.value.Store(1)
		wantLoad(t, a, &s, 1)
		end := time.Now().Add(10*time.Second + time.Minute)
		network.cut.Store(true)
		s.down.Store(true)
		mustSet(t, b, "k", 2, tiercache.TTL(time.Second))
		for time.Until(end) > 2*time.Second {
			time.Sleep(time.Second)
			wantLoad(t, a, &s, 1)
		}
		time.Sleep(2 * time.Second)
		wantDown(t, a, &s)
		network.cut.Store(false)
		s.down.Store(false)
		time.Sleep(2 * bound)
		wantLoad(t, a, &s, 1)
		time.Sleep(11 * time.Second)
		network.cut.Store(true)
		s.down.Store(true)
		mustSet(t, b, "k", 3, tiercache.TTL(time.Millisecond))
		time.Sleep(bound)
		wantLoad(t, a, &s, 1)
		network.cut.Store(false)
		time.Sleep(2 * bound)
		wantDown(t, a, &s)
	})
}

// TestSoftTimeout: a caller waits so long and no longer, if there is a value of
// before; the load goes on and is stored. The hard time-out ends it.
func TestSoftTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		opts := staleOptions
		opts.SoftTimeout = 100 * time.Millisecond
		c := open[int](t, one(shard), &opts)
		synced(t, c)
		var s source
		took := func(want int) time.Duration {
			t.Helper()
			began := time.Now()
			wantLoad(t, c, &s, want)
			return time.Since(began)
		}
		s.takes.Store(int64(time.Second))
		s.value.Store(1)
		if d := took(1); d != time.Second {
			t.Errorf("without a value of before: took %v, want the load's second", d)
		}
		time.Sleep(11 * time.Second)
		s.value.Store(2)
		if d := took(1); d != 100*time.Millisecond {
			t.Errorf("with one: took %v, want 100 ms", d)
		}
		if d := took(1); d != 100*time.Millisecond {
			t.Errorf("once more, while the load is under way: took %v, want 100 ms", d)
		}
		if n := s.loads.Load(); n != 2 {
			t.Errorf("got %d loads, want 2", n)
		}
		time.Sleep(time.Second)
		if d := took(2); d != 0 {
			t.Errorf("when it is done: took %v, want no time", d)
		}
		time.Sleep(11 * time.Second)
		s.takes.Store(int64(time.Hour))
		errs := c.Stats().LoadErrors
		took(2)
		time.Sleep(opts.LoadTimeout)
		if n := c.Stats().LoadErrors - errs; n != 1 {
			t.Errorf("after the hard time-out: got %d failed loads, want 1", n)
		}
		// A key without a value of before has the hard one.
		began := time.Now()
		if _, err := c.GetOrLoad(t.Context(), "other", s.load); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != opts.LoadTimeout {
			t.Errorf("got %v after %v, want DeadlineExceeded after %v", err, time.Since(began), opts.LoadTimeout)
		}
	})
}

// TestSoftTimeoutAlone: the soft time-out holds while the shard hangs, too, as long
// as L1 knows that the value was the last, and once it is known that the shard is
// out of reach.
func TestSoftTimeoutAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &faulty{Shard: memory.New(nil)}
		opts := staleOptions
		opts.SoftTimeout = 100 * time.Millisecond
		c := open[int](t, one(network), &opts)
		synced(t, c)
		var s source
		s.takes.Store(int64(5 * time.Second))
		wantLoad(t, c, &s, 0)
		time.Sleep(11 * time.Second)
		network.cut.Store(true)
		for i, most := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond} {
			began := time.Now()
			wantLoad(t, c, &s, 0)
			if d := time.Since(began); d > most {
				t.Errorf("%d: took %v, want %v at most", i, d, most)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

// TestStaleLost: that the shard has ceased to answer counts, too, when it is found
// out while a load is under way.
func TestStaleLost(t *testing.T) {
	for _, soft := range []time.Duration{0, time.Second} {
		t.Run(fmt.Sprint("SoftTimeout ", soft), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &faulty{Shard: memory.New(nil)}
				opts := staleOptions
				opts.SoftTimeout = soft
				c := open[int](t, one(network), &opts)
				synced(t, c)
				var s source
				wantLoad(t, c, &s, 0)
				time.Sleep(11 * time.Second)
				s.takes.Store(int64(15 * time.Second))
				s.down.Store(true)
				most := 16 * time.Second
				if soft > 0 {
					most = 2 * soft
				}
				time.AfterFunc(10*time.Millisecond, func() { network.cut.Store(true) })
				for range 5 {
					began := time.Now()
					wantLoad(t, c, &s, 0)
					if d := time.Since(began); d > most {
						t.Errorf("took %v, want %v at most", d, most)
					}
					time.Sleep(700 * time.Millisecond)
				}
			})
		})
	}
}

// TestSoftTimeoutRemoved: a Delete during a load that goes on behind wins.
func TestSoftTimeoutRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		opts := staleOptions
		opts.SoftTimeout = 100 * time.Millisecond
		a, b := open[int](t, one(shard), &opts), open[int](t, one(shard), nil)
		synced(t, a, b)
		var s source
		s.value.Store(1)
		s.takes.Store(int64(time.Second))
		wantLoad(t, a, &s, 1)
		time.Sleep(11 * time.Second)
		wantLoad(t, a, &s, 1)
		s.value.Store(2)
		if err := b.Delete(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		began := time.Now()
		wantLoad(t, a, &s, 2) // not 1, which the load from before still brings
		if d := time.Since(began); d != time.Second {
			t.Errorf("took %v, want a load of its own", d)
		}
		time.Sleep(5 * time.Second)
		wantGet(t, a, "k", 2)
		wantGet(t, b, "k", 2)
	})
}
