package replset

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Flush joins the write under way and then writes the rest: what it promises
// holds for each change accepted before it, whichever write took it.
func TestCoalescerFlushWritesAllBefore(t *testing.T) {
	opts := CoalescerOptions{Tick: time.Second}
	tickTest(t, opts, slowly(5*time.Second), func(t *testing.T, c *Coalescer, set *tickSet) {
		doAll(t, c, "+a")
		nextTick(c) // at 1s, until 6s
		doAll(t, c, "+b")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := c.Flush(t.Context()); err != nil {
					t.Error(err)
				}
				if n := c.Pending(); n != 0 {
					t.Errorf("after Flush: got %d pending, want 0", n)
				}
				if at := time.Since(tickZero); at != 11*time.Second {
					t.Errorf("Flush returned at %v, want 11s", at)
				}
			})
		}
		wg.Wait()
		if w := set.seen(); len(w) != 2 || w[0].add != "a" || w[1].add != "b" || w[1].at != 6*time.Second {
			t.Errorf("got %+v, want +a, and +b at 6s", w)
		}
		if err := c.Flush(t.Context()); err != nil || len(set.seen()) != 0 {
			t.Errorf("with nothing to do: got %v, or a write", err)
		}
	})
}

func TestCoalescerFlushTellsFailure(t *testing.T) {
	opts := CoalescerOptions{Tick: time.Second}
	tickTest(t, opts, inTurn(errTickHome, behindAt(4), nil), func(t *testing.T, c *Coalescer, set *tickSet) {
		doAll(t, c, "+a")
		if err := c.Flush(t.Context()); !errors.Is(err, errTickHome) || c.Pending() != 1 {
			t.Errorf("home slot lost: got %v, %d pending", err, c.Pending())
		}
		var partial *WriteError
		if err := c.Flush(t.Context()); !errors.As(err, &partial) || len(partial.Failed) != 1 || c.Pending() != 0 {
			t.Errorf("a slot lost: got %v, %d pending", err, c.Pending())
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Errorf("the slot is back: %v", err)
		}
		if w := set.seen(); len(w) != 3 || len(w[2].resynced) != 1 || w[2].resynced[0] != 4 {
			t.Errorf("got %+v, want two deltas and a resync of slot 4", w)
		}
	})
}

// A caller who stops waiting does not cut the write off.
func TestCoalescerFlushEndsWithItsContext(t *testing.T) {
	tickTest(t, CoalescerOptions{Tick: time.Hour}, slowly(5*time.Second), func(t *testing.T, c *Coalescer, set *tickSet) {
		doAll(t, c, "+a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "replset: flush: ") {
			t.Errorf("got %v, want the deadline's error", err)
		}
		if n := c.Pending(); n != 1 {
			t.Errorf("during the write: got %d pending, want 1", n)
		}
		time.Sleep(5 * time.Second)
		if n := c.Pending(); n != 0 {
			t.Errorf("after the write: got %d pending, want 0", n)
		}
	})
}

// Ticks have the next tick to try again in; callers who wait do not.
func TestCoalescerPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		patient, brisk := &tickSet{}, &tickSet{}
		opts, _ := (&CoalescerOptions{}).withDefaults()
		c := newCoalescer(patient, brisk, time.Minute, opts)
		doAll(t, c, "+a")
		nextTick(c)
		doAll(t, c, "+b")
		if err := c.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		doAll(t, c, "+c")
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if w := patient.seen(); len(w) != 2 || w[0].add != "b" || w[1].add != "c" {
			t.Errorf("Flush and Close wrote %+v, want +b, +c", w)
		}
		if w := brisk.one(t); w.add != "a" {
			t.Errorf("the tick wrote +%s, want +a", w.add)
		}
	})
}

func TestCoalescerCloseFlushes(t *testing.T) {
	tickTest(t, CoalescerOptions{Tick: time.Second}, slowly(3*time.Second), func(t *testing.T, c *Coalescer, set *tickSet) {
		doAll(t, c, "+a")
		nextTick(c) // a write is under way
		doAll(t, c, "-a", "+b")
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if at := time.Since(tickZero); at != 7*time.Second {
			t.Errorf("closed at %v, want 7s: two writes of 3s", at)
		}
		if w := set.seen(); len(w) != 2 || w[1].add != "b" || w[1].remove != "a" {
			t.Errorf("got %+v, want the second write to be +b -a", w)
		}
		for name, change := range map[string]func(...string) error{"add": c.Add, "remove": c.Remove} {
			if err := change("x"); !errors.Is(err, ErrCoalescerClosed) || !strings.HasPrefix(err.Error(), "replset: "+name+": ") {
				t.Errorf("%s after Close: got %v, want ErrCoalescerClosed", name, err)
			}
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Errorf("Flush after Close: %v", err)
		}
		time.Sleep(time.Minute)
		if w := set.seen(); len(w) != 0 || c.Pending() != 0 {
			t.Errorf("after Close: %d writes, %d pending", len(w), c.Pending())
		}
	})
}

func TestCoalescerCloseTellsWhatIsUnwritten(t *testing.T) {
	for _, tc := range []struct {
		name    string
		err     error
		members int // unwritten
		text    string
	}{
		{"home slot lost", errTickHome, 3, "replset: close: 3 members stay unwritten: apply: slot 42: no answer"},
		{"slots lost", behindAt(1, 2), 0, "replset: apply reached 16382 of 16384 slots; slot 1: no answer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls := 0
			opts := CoalescerOptions{Tick: time.Hour, OnFlush: func(s FlushStats) {
				if calls++; s.Err != tc.err || s.Pending != tc.members {
					t.Errorf("got stats %+v", s)
				}
			}}
			tickTest(t, opts, func(context.Context) error { return tc.err }, func(t *testing.T, c *Coalescer, set *tickSet) {
				doAll(t, c, "+a", "+b", "-c")
				for range 2 { // idempotent
					err := c.Close(t.Context())
					if !errors.Is(err, tc.err) || err.Error() != tc.text {
						t.Errorf("got %v, want %s", err, tc.text)
					}
					var unwritten *UnwrittenError
					if errors.As(err, &unwritten) != (tc.members > 0) || tc.members > 0 && unwritten.Members != tc.members {
						t.Errorf("got %#v, want %d unwritten", err, tc.members)
					}
				}
				if err := c.Flush(t.Context()); !errors.Is(err, tc.err) {
					t.Errorf("Flush after Close: got %v, want %v", err, tc.err)
				}
				if w := set.one(t); calls != 1 || w.at != 0 {
					t.Errorf("got %d flushes, the first write at %v; want 1, at once", calls, w.at)
				}
			})
		})
	}
}

// Close returns when its ctx ends, and the goroutine soon after, at whatever
// point the frozen cluster holds it.
func TestCoalescerCloseEndsWithItsContext(t *testing.T) {
	for _, underWay := range []bool{false, true} {
		tickTest(t, CoalescerOptions{Tick: time.Second}, frozen, func(t *testing.T, c *Coalescer, set *tickSet) {
			doAll(t, c, "+a", "+b")
			if underWay {
				nextTick(c)
			}
			doAll(t, c, "-b", "+c")
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			err := c.Close(ctx)
			var unwritten *UnwrittenError
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &unwritten) || unwritten.Members != 3 {
				t.Errorf("got %v, want the deadline's error and 3 unwritten", err)
			}
			synctest.Wait()
			if took := time.Since(start); took != 2*time.Second {
				t.Errorf("Close took %v, want 2s", took)
			}
			select {
			case <-c.done:
			default:
				t.Error("the goroutine goes on")
			}
			if err := c.Close(ctx); !errors.As(err, &unwritten) || unwritten.Members != 3 || !errors.Is(err, context.Canceled) {
				t.Errorf("Close again: got %v, want 3 unwritten, cancelled", err)
			}
		})
	}
}

// Each write has a bound, so Close ends without one of its caller's.
func TestCoalescerCloseEndsOnAFrozenCluster(t *testing.T) {
	tickTest(t, CoalescerOptions{Tick: time.Second}, frozen, func(t *testing.T, c *Coalescer, _ *tickSet) {
		doAll(t, c, "+a")
		nextTick(c)
		start := time.Now()
		if err := c.Close(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the bound's error", err)
		}
		if took := time.Since(start); took != 2*time.Minute {
			t.Errorf("Close took %v, want the bound of the write under way and of its own, 2m", took)
		}
	})
}

// Every change that was accepted is written by the time Close has returned,
// whatever is called at the same time.
func TestCoalescerCloseAmongOthers(t *testing.T) {
	for range 50 {
		tickTest(t, CoalescerOptions{Tick: time.Millisecond, FlushAt: 3}, slowly(time.Millisecond), func(t *testing.T, c *Coalescer, set *tickSet) {
			var accepted atomic.Int64
			var wg sync.WaitGroup
			for i := range 4 {
				name := string(rune('a' + i))
				wg.Go(func() {
					for j := 0; ; j++ {
						if err := c.Add(name + strings.Repeat("'", j)); err != nil {
							if !errors.Is(err, ErrCoalescerClosed) {
								t.Error(err)
							}
							return
						}
						accepted.Add(1)
						time.Sleep(300 * time.Microsecond)
					}
				})
				wg.Go(func() {
					for range 3 {
						if err := c.Flush(t.Context()); err != nil {
							t.Error(err)
						}
						time.Sleep(time.Millisecond)
					}
				})
			}
			time.Sleep(10 * time.Millisecond)
			for range 3 {
				wg.Go(func() {
					if err := c.Close(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			written := 0
			for _, w := range set.seen() {
				written += w.members
			}
			if int64(written) != accepted.Load() || c.Pending() != 0 {
				t.Errorf("got %d members written of %d accepted, %d pending", written, accepted.Load(), c.Pending())
			}
		})
	}
}
