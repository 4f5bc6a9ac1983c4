package replset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/replset/memory"
)

func TestCoalescerLastChangeWins(t *testing.T) {
	for _, tc := range []struct {
		changes     string
		add, remove string
		absorbed    int
	}{
		{"+a", "a", "", 0},
		{"-a", "", "a", 0},
		{"+a -a", "", "a", 1},
		{"-a +a", "a", "", 1},
		{"+a +a", "a", "", 1},
		{"+a -a +a -a", "", "a", 3},
		{"+a -b +c -c +d", "ad", "bc", 1},
	} {
		t.Run(tc.changes, func(t *testing.T) {
			tickTest(t, CoalescerOptions{}, nil, func(t *testing.T, c *Coalescer, set *tickSet) {
				doAll(t, c, strings.Fields(tc.changes)...)
				nextTick(c)
				if w := set.one(t); w.add != tc.add || w.remove != tc.remove {
					t.Errorf("got +%s -%s, want +%s -%s", w.add, w.remove, tc.add, tc.remove)
				}
				want := []FlushStats{{Added: len(tc.add), Removed: len(tc.remove), Absorbed: tc.absorbed}}
				if stats := set.flushed(); !slices.Equal(stats, want) {
					t.Errorf("got stats %+v, want %+v", stats, want)
				}
			})
		})
	}
}

func TestCoalescerWritesOnceATick(t *testing.T) {
	tickTest(t, CoalescerOptions{Tick: time.Second}, nil, func(t *testing.T, c *Coalescer, set *tickSet) {
		for i := range 40 { // four ticks of ten changes
			doAll(t, c, fmt.Sprintf("+%c", 'a'+i%10))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		time.Sleep(10 * time.Second) // ten ticks without any
		writes := set.seen()
		if len(writes) != 4 {
			t.Fatalf("got %d writes, want 4: %+v", len(writes), writes)
		}
		for i, w := range writes {
			if at := time.Duration(i+1) * time.Second; w.at != at || !w.hasDeadline || w.untilDeadline != time.Minute {
				t.Errorf("write %d: at %v, to end by %v after it; want %v and 1m", i, w.at, w.untilDeadline, at)
			}
		}
	})
}

func TestCoalescerFlushesEarly(t *testing.T) {
	opts := CoalescerOptions{Tick: time.Second, FlushAt: 3}
	tickTest(t, opts, nil, func(t *testing.T, c *Coalescer, set *tickSet) {
		time.Sleep(500 * time.Millisecond)
		doAll(t, c, "+a", "-b", "-a", "+b")
		synctest.Wait()
		if w := set.seen(); len(w) != 0 {
			t.Errorf("with 2 members of 3: got %+v, want no write", w)
		}
		doAll(t, c, "+c")
		synctest.Wait()
		if w := set.one(t); w.add != "bc" || w.remove != "a" || w.at != 500*time.Millisecond {
			t.Errorf("got +%s -%s at %v, want +bc -a at 500ms", w.add, w.remove, w.at)
		}
		doAll(t, c, "+d") // a whole tick from the early write
		nextTick(c)
		if w := set.one(t); w.at != 1500*time.Millisecond {
			t.Errorf("the next write: got it at %v, want 1.5s", w.at)
		}
	})
}

// A cluster that is away is asked once a tick, however much is buffered.
func TestCoalescerFlushesNotEarlyWhileAway(t *testing.T) {
	opts := CoalescerOptions{Tick: time.Second, FlushAt: 2}
	away := func(context.Context) error { return errTickHome }
	tickTest(t, opts, away, func(t *testing.T, c *Coalescer, set *tickSet) {
		doAll(t, c, "+a", "+b")
		synctest.Wait()
		set.one(t)
		for i := range 9 {
			doAll(t, c, fmt.Sprintf("+%d", i))
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if w := set.seen(); len(w) != 0 {
			t.Errorf("between two ticks: got %d writes, want none", len(w))
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		set.one(t)
		set.nowAnswers(nil)
		nextTick(c)
		if w := set.one(t); w.members != 11 {
			t.Errorf("when it is back: got %d members, want 11", w.members)
		}
		doAll(t, c, "+x", "+y")
		synctest.Wait()
		set.one(t)
	})
}

// What piles up during a write that fails does not start another at once.
func TestCoalescerFailureEndsAnEarlyFlush(t *testing.T) {
	opts := CoalescerOptions{Tick: time.Second, FlushAt: 2}
	answer := func(ctx context.Context) error { return errors.Join(slowly(300*time.Millisecond)(ctx), errTickHome) }
	tickTest(t, opts, answer, func(t *testing.T, c *Coalescer, set *tickSet) {
		doAll(t, c, "+a")
		nextTick(c) // at 1s, until 1.3s
		doAll(t, c, "+b", "+c")
		time.Sleep(900 * time.Millisecond)
		set.one(t)
		nextTick(c)
		if w := set.one(t); w.at != 2*time.Second || w.add != "abc" {
			t.Errorf("got +%s at %v, want +abc at 2s", w.add, w.at)
		}
	})
}

func TestCoalescerNeverOverlaps(t *testing.T) {
	opts := CoalescerOptions{Tick: time.Second, FlushAt: 4}
	tickTest(t, opts, slowly(3500*time.Millisecond), func(t *testing.T, c *Coalescer, set *tickSet) {
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() { time.Sleep(time.Duration(i) * 2 * time.Second); _ = c.Flush(t.Context()) })
		}
		for i := range 100 {
			doAll(t, c, fmt.Sprintf("+%d", i%7))
			time.Sleep(100 * time.Millisecond)
		}
		wg.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		writes := set.seen()
		for i := 1; i < len(writes); i++ {
			if d := writes[i].at - writes[i-1].at; d < 3500*time.Millisecond {
				t.Errorf("writes %d and %d are %v apart, and the first takes 3.5s", i-1, i, d)
			}
		}
		if len(writes) < 3 {
			t.Errorf("got %d writes, want several", len(writes))
		}
	})
}

func TestCoalescerRetriesFailedSlots(t *testing.T) {
	answers := inTurn(
		behindAt(3, 7),    // a delta
		behindAt(7),       // resync of 3 and 7
		errTickHome,       // resync of 7: the home slot does not tell
		errTickHome,       // a delta that is not written
		behindAt(7, 9),    // the same delta
		behindAt(7, 9, 5), // a newer one
	)
	tickTest(t, CoalescerOptions{}, answers, func(t *testing.T, c *Coalescer, set *tickSet) {
		steps := []struct {
			change, add, remove string
			resynced            []uint16
			failed, pending     int
		}{
			{"+a", "a", "", nil, 2, 0},
			{"", "", "", []uint16{3, 7}, 1, 0},
			{"", "", "", []uint16{7}, 1, 0},
			{"-a", "", "a", nil, 1, 1},
			{"", "", "a", nil, 2, 0},
			{"+b", "b", "", nil, 3, 0},
			{"", "", "", []uint16{7, 9, 5}, 0, 0},
		}
		for i, s := range steps {
			if s.change != "" {
				doAll(t, c, s.change)
			}
			nextTick(c)
			w := set.one(t)
			if w.add != s.add || w.remove != s.remove || !slices.Equal(w.resynced, s.resynced) {
				t.Errorf("tick %d: got +%s -%s, resync %v; want +%s -%s, resync %v", i, w.add, w.remove, w.resynced, s.add, s.remove, s.resynced)
			}
			if got := set.flushed()[i]; got.FailedSlots != s.failed || got.Pending != s.pending || got.Added+got.Removed != len(s.add+s.remove)-s.pending {
				t.Errorf("tick %d: got stats %+v, want %d failed slots, %d pending", i, got, s.failed, s.pending)
			}
		}
		nextTick(c)
		if w := set.seen(); len(w) != 0 {
			t.Errorf("with nothing left to do: got %+v", w)
		}
	})
}

// A delta reaches all slots, those too that an earlier write failed at: none is
// behind when it has succeeded.
func TestCoalescerDeltaSettlesFailedSlots(t *testing.T) {
	tickTest(t, CoalescerOptions{}, inTurn(behindAt(3)), func(t *testing.T, c *Coalescer, set *tickSet) {
		doAll(t, c, "+a")
		nextTick(c)
		doAll(t, c, "+b")
		nextTick(c)
		nextTick(c)
		if w := set.seen(); len(w) != 2 || w[1].add != "b" {
			t.Errorf("got %+v, want the two deltas only", w)
		}
	})
}

// Slots that hold the write are not written again for want of server replicas.
func TestCoalescerLeavesUnderReplicatedSlots(t *testing.T) {
	partial := behindAt(3, 7).(*WriteError)
	partial.Failed[0].Err = fmt.Errorf("%w: 0 of 1", ErrUnderReplicated)
	tickTest(t, CoalescerOptions{}, inTurn(partial), func(t *testing.T, c *Coalescer, set *tickSet) {
		doAll(t, c, "+a")
		nextTick(c)
		if s := set.flushed()[0]; s.FailedSlots != 1 || !errors.Is(s.Err, ErrUnderReplicated) {
			t.Errorf("got stats %+v, want 1 failed slot and both in the error", s)
		}
		nextTick(c)
		if w := set.seen(); len(w) != 2 || !slices.Equal(w[1].resynced, []uint16{7}) {
			t.Errorf("got %+v, want slot 7 to be written again", w)
		}
	})
}

func TestCoalescerPutsBackUnderNewerChanges(t *testing.T) {
	opts := CoalescerOptions{Tick: time.Second}
	first := true
	failLate := func(context.Context) error {
		if !first {
			return nil
		}
		first = false
		time.Sleep(500 * time.Millisecond)
		return errTickHome
	}
	tickTest(t, opts, failLate, func(t *testing.T, c *Coalescer, set *tickSet) {
		doAll(t, c, "+a", "+b", "-c", "+d")
		nextTick(c) // the write is under way
		doAll(t, c, "-a", "+c", "+d", "+e", "-e")
		if n := c.Pending(); n != 5 {
			t.Errorf("during the write: got %d pending, want 5", n)
		}
		nextTick(c)
		w := set.seen()
		if len(w) != 2 || w[0].add != "abd" || w[0].remove != "c" || w[1].add != "bcd" || w[1].remove != "ae" {
			t.Errorf("got %+v, want +abd -c, then +bcd -ae", w)
		}
		want := []FlushStats{
			{Took: 500 * time.Millisecond, Pending: 5, Err: errTickHome},
			{Added: 3, Removed: 2, Absorbed: 4}, // a, c, d of the failed tick, and the first e
		}
		if stats := set.flushed(); !slices.Equal(stats, want) {
			t.Errorf("got stats %+v, want %+v", stats, want)
		}
	})
}

func TestCoalescerBoundsItsBuffer(t *testing.T) {
	opts := CoalescerOptions{Tick: time.Second, MaxPending: 4, FlushAt: 4}
	tickTest(t, opts, inTurn(errTickHome, errTickHome), func(t *testing.T, c *Coalescer, set *tickSet) {
		refused := func(err error) {
			t.Helper()
			if !errors.Is(err, ErrCoalescerFull) || !strings.Contains(err.Error(), "at most 4 (MaxPending)") {
				t.Errorf("got %v, want ErrCoalescerFull that names the bound", err)
			}
		}
		doAll(t, c, "+a", "+b", "-c")
		refused(c.Add("d", "e"))
		refused(c.Remove("a", "e", "d"))
		if n := c.Pending(); n != 3 {
			t.Fatalf("after refusals: got %d pending, want 3", n)
		}
		nextTick(c) // fails
		if err := c.Add("d", "d", "a", "c"); err != nil {
			t.Errorf("one new member and two buffered ones: %v", err)
		}
		refused(c.Add("e"))
		if err := c.Remove("a", "b", "c", "d"); err != nil {
			t.Errorf("buffered members only: %v", err)
		}
		nextTick(c) // fails
		set.seen()
		nextTick(c)
		if w := set.one(t); w.add != "" || w.remove != "abcd" {
			t.Errorf("got +%s -%s, want -abcd", w.add, w.remove)
		}
		if n := c.Pending(); n != 0 {
			t.Errorf("after the write: got %d pending, want 0", n)
		}
		doAll(t, c, "+e", "+f", "+g", "+h")
	})
}

// The members of a write under way count, so that it can be put back.
func TestCoalescerBoundCountsTheWriteUnderWay(t *testing.T) {
	opts := CoalescerOptions{Tick: time.Second, MaxPending: 2}
	tickTest(t, opts, slowly(1500*time.Millisecond), func(t *testing.T, c *Coalescer, set *tickSet) {
		doAll(t, c, "+a", "+b")
		synctest.Wait() // an early write is under way
		if err := c.Add("c"); !errors.Is(err, ErrCoalescerFull) {
			t.Errorf("a third member: got %v, want ErrCoalescerFull", err)
		}
		doAll(t, c, "-a")
		if n := c.Pending(); n != 2 {
			t.Errorf("got %d pending, want 2", n)
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		doAll(t, c, "+c")
		if err := c.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		w := set.seen()
		if len(w) < 2 || w[0].add != "ab" || w[1].remove != "a" {
			t.Errorf("got %+v", w)
		}
	})
}

// What piled up goes out in several deltas, and what is written of it is not
// written again when one of them fails.
func TestCoalescerSplitsABacklog(t *testing.T) {
	const n = 2*deltaMost + deltaMost/2
	opts := CoalescerOptions{FlushAt: n + 1}
	behind := behindAt(5)
	tickTest(t, opts, inTurn(behind, errTickHome), func(t *testing.T, c *Coalescer, set *tickSet) {
		for i := range n {
			change := c.Add
			if i%2 == 1 {
				change = c.Remove
			}
			if err := change(fmt.Sprintf("%d,", i)); err != nil {
				t.Fatal(err)
			}
		}
		nextTick(c)
		nextTick(c)
		w := set.seen()
		var sizes []int
		written := map[string]bool{}
		for i, w := range w {
			sizes = append(sizes, w.members)
			if i == 1 {
				continue // failed
			}
			for _, m := range strings.Split(strings.TrimSuffix(w.add+w.remove, ","), ",") {
				if written[m] {
					t.Fatalf("member %s is written twice", m)
				}
				written[m] = true
			}
		}
		if !slices.Equal(sizes, []int{deltaMost, deltaMost, deltaMost, deltaMost / 2}) || len(written) != n {
			t.Errorf("got deltas of %v, %d members; want three of %d and one of half, %d", sizes, len(written), deltaMost, n)
		}
		if stats := set.flushed(); len(stats) != 2 || stats[0].Added+stats[0].Removed != deltaMost || stats[0].Pending != n-deltaMost ||
			stats[0].FailedSlots != 1 || stats[1].Added+stats[1].Removed != n-deltaMost || stats[1].FailedSlots != 0 {
			t.Errorf("got stats %+v", stats)
		}
	})
}

// OnFlush sees each flush once, may change the set, and is never called twice at
// a time.
func TestCoalescerOnFlushMayChange(t *testing.T) {
	var c *Coalescer
	calls, inside := 0, false
	opts := CoalescerOptions{OnFlush: func(s FlushStats) {
		if inside {
			t.Error("called while it runs")
		}
		inside = true
		defer func() { inside = false }()
		if calls++; calls == 1 {
			if s.Pending != c.Pending() {
				t.Errorf("got %d pending, stats say %d", c.Pending(), s.Pending)
			}
			if err := errors.Join(c.Add("b"), c.Remove("c")); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Minute)
	}}
	tickTest(t, opts, nil, func(t *testing.T, co *Coalescer, set *tickSet) {
		c = co
		doAll(t, c, "+a")
		time.Sleep(2 * time.Minute)
		if w := set.seen(); len(w) != 2 || w[1].add != "b" || w[1].remove != "c" {
			t.Errorf("got %+v, want the second write to be +b -c", w)
		}
		if err := c.Close(t.Context()); err != nil || calls != 2 {
			t.Errorf("got %v and %d calls, want 2", err, calls)
		}
	})
}

func TestCoalescerOptions(t *testing.T) {
	set, err := New(memory.New(), "active", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]*CoalescerOptions{
		"Tick":                    {Tick: -time.Second},
		"FlushAt":                 {FlushAt: -1},
		"MaxPending":              {MaxPending: -1},
		"FlushAt 11":              {FlushAt: 11, MaxPending: 10},
		"FlushAt 1000001":         {FlushAt: defaultMaxPending + 1},
		"FlushAt 5 is over MaxPe": {FlushAt: 5, MaxPending: 2, Tick: time.Second},
	} {
		c, err := NewCoalescer(set, opts)
		if c != nil || err == nil || !strings.HasPrefix(err.Error(), "replset: NewCoalescer: "+name) {
			t.Errorf("%+v: got %v, want an error on %s", opts, err, name)
		}
	}
	if c, err := NewCoalescer(nil, nil); c != nil || err == nil {
		t.Errorf("no set: got %v, want an error", err)
	}
	for _, tc := range []struct{ given, want CoalescerOptions }{
		{CoalescerOptions{}, CoalescerOptions{Tick: 250 * time.Millisecond, FlushAt: 1000, MaxPending: 1_000_000}},
		{CoalescerOptions{MaxPending: 10}, CoalescerOptions{Tick: 250 * time.Millisecond, FlushAt: 10, MaxPending: 10}},
		{CoalescerOptions{Tick: 1, FlushAt: 2, MaxPending: 2}, CoalescerOptions{Tick: 1, FlushAt: 2, MaxPending: 2}},
	} {
		got, err := tc.given.withDefaults()
		if err != nil || got.Tick != tc.want.Tick || got.FlushAt != tc.want.FlushAt || got.MaxPending != tc.want.MaxPending {
			t.Errorf("%+v: got %+v, %v", tc.given, got, err)
		}
	}
}
