package replset

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tickSet stands for the Set under a Coalescer: it records the writes, and
// answers them as a test says.
type tickSet struct {
	mu      sync.Mutex
	answer  func(ctx context.Context) error // nil: every write succeeds at once
	writes  []tickWrite
	stats   []FlushStats
	busy    bool
	overlap bool
}

// tickWrite is one delta, or one resync of slots.
type tickWrite struct {
	at            time.Duration // since the set was made
	add, remove   string        // sorted, joined
	resynced      []uint16
	members       int
	hasDeadline   bool
	untilDeadline time.Duration
}

func (s *tickSet) Apply(ctx context.Context, d Delta) error {
	return s.write(ctx, tickWrite{add: tickJoin(d.Add), remove: tickJoin(d.Remove), members: len(d.Add) + len(d.Remove)})
}

func (s *tickSet) resync(ctx context.Context, _ string, slots []uint16) error {
	return s.write(ctx, tickWrite{resynced: slices.Clone(slots)})
}

// tickZero is when a synctest bubble begins.
var tickZero = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (s *tickSet) write(ctx context.Context, w tickWrite) error {
	w.at = time.Since(tickZero)
	var deadline time.Time
	deadline, w.hasDeadline = ctx.Deadline()
	w.untilDeadline = time.Until(deadline)
	s.mu.Lock()
	s.overlap = s.overlap || s.busy
	s.busy = true
	s.writes = append(s.writes, w)
	answer := s.answer
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy = false
	}()
	if answer == nil {
		return nil
	}
	return answer(ctx)
}

// nowAnswers changes how writes are answered.
func (s *tickSet) nowAnswers(answer func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// flushed returns what OnFlush was told so far.
func (s *tickSet) flushed() []FlushStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stats)
}

// seen returns the writes so far and forgets them.
func (s *tickSet) seen() []tickWrite {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.writes
	s.writes = nil
	return w
}

// one returns the only write since the last look.
func (s *tickSet) one(t *testing.T) tickWrite {
	t.Helper()
	w := s.seen()
	if len(w) != 1 {
		t.Fatalf("got %d writes %+v, want 1", len(w), w)
	}
	return w[0]
}

func tickJoin(members []string) string {
	members = slices.Sorted(slices.Values(members))
	var text []byte
	for _, m := range members {
		text = append(text, m...)
	}
	return string(text)
}

// inTurn answers each write with the next of errs, and then with nil.
func inTurn(errs ...error) func(context.Context) error {
	var mu sync.Mutex
	return func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

// slowly answers after d, or when ctx ends, with its error.
func slowly(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// frozen answers when ctx ends.
func frozen(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

var errTickHome = errors.New("replset: apply: slot 42: no answer")

// behindAt is a write that did not reach some slots.
func behindAt(slots ...uint16) error {
	e := &WriteError{Op: "apply", Number: 7, Written: 16384 - len(slots)}
	for _, slot := range slots {
		e.Failed = append(e.Failed, &SlotError{Slot: slot, Op: "apply", Err: errors.New("no answer")})
	}
	return e
}

// tickTest runs a test with a Coalescer over a tickSet, and closes it at the
// end. The bubble fails the test if a goroutine is left.
func tickTest(t *testing.T, opts CoalescerOptions, answer func(context.Context) error,
	test func(t *testing.T, c *Coalescer, set *tickSet),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		set := &tickSet{answer: answer}
		told := opts.OnFlush
		opts.OnFlush = func(stats FlushStats) {
			set.mu.Lock()
			set.stats = append(set.stats, stats)
			set.mu.Unlock()
			if told != nil {
				told(stats)
			}
		}
		opts, err := opts.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		c := newCoalescer(set, set, time.Minute, opts)
		test(t, c, set)
		_ = c.Close(t.Context())
		if set.overlap {
			t.Error("two writes overlapped")
		}
	})
}

// doAll makes changes written as "+a -b": add a, remove b.
func doAll(t *testing.T, c *Coalescer, changes ...string) {
	t.Helper()
	for _, ch := range changes {
		change := c.Remove
		if ch[0] == '+' {
			change = c.Add
		}
		if err := change(ch[1:]); err != nil {
			t.Fatalf("%s: %v", ch, err)
		}
	}
}

// nextTick lets the next tick pass.
func nextTick(c *Coalescer) {
	time.Sleep(c.opts.Tick)
	synctest.Wait()
}
