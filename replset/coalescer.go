package replset

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

var (
	// ErrCoalescerClosed means that Add or Remove came after Close. The change
	// was not taken.
	ErrCoalescerClosed = errors.New("the coalescer is closed")

	// ErrCoalescerFull means that the cluster has been away for so long that
	// the buffer is at CoalescerOptions.MaxPending. Nothing of the call was
	// taken: drop the change, or try again later.
	ErrCoalescerFull = errors.New("the coalescer is full")
)

// UnwrittenError says how many members Close left unwritten.
type UnwrittenError struct {
	Members int   // those of a write that was cut off may have been written
	Err     error // why
}

func (e *UnwrittenError) Error() string {
	return fmt.Sprintf("replset: close: %d members stay unwritten: %s", e.Members, strings.TrimPrefix(e.Err.Error(), "replset: "))
}

func (e *UnwrittenError) Unwrap() error { return e.Err }

// Coalescer buffers adds and removes and writes them as one delta a tick, for
// presence and other sets that change all the time: the cluster's writes follow
// the tick rate, and the churn only decides how many members each carries.
//
// The last change to a member within a tick is the one that is written. Ticks
// never overlap, and one with nothing to do does no I/O. All methods may be
// called concurrently. The Coalescer has one goroutine, which Close ends.
//
// Staleness: a slot that can be reached holds a change one tick and two writes
// after Add or Remove returned, at the latest: the write under way and the
// change's own. Slots that cannot be reached lengthen each write by no more than
// one tick of retries and the client's own time-outs, so that one lost node
// hardly holds up the others; its slots follow in the first tick that reaches
// them. The exception is the home slot: while its node is lost, nothing is
// written.
//
// Failure: a write that did not reach the home slot puts its changes back, under
// newer ones to the same members, and the next tick tries again; that is safe
// also when the write's outcome is unknown. A write that missed other slots is
// completed there by the next tick, whether or not there are new changes. While
// the cluster stays away, the buffer grows to MaxPending members; then changes to
// new members are refused, and those to buffered members still taken. What is
// buffered is lost with the process. A cluster that accepts writes and does not
// answer holds one up for twice the set's Patience and 10 s, where the client has
// no time-out of its own.
//
// The set must have been published: until then, and after a Clear, ticks fail
// with ErrReplicaMissing. Changes that are buffered while someone publishes are
// applied to what was published.
type Coalescer struct {
	opts    CoalescerOptions
	patient coalesced     // for callers who wait
	brisk   coalesced     // for ticks
	bound   time.Duration // of one write

	wake   chan struct{} // a flush before its tick is due
	done   chan struct{} // the goroutine has ended
	cancel context.CancelFunc
	last   error    // what Close returns, once done is closed
	failed []uint16 // slots that are behind; the goroutine's

	mu       sync.Mutex
	pending  map[string]bool // member -> added, or removed
	flying   map[string]bool // likewise, in the write under way; only the goroutine changes it
	size     int             // members in pending or flying
	absorbed int             // since the last flush
	waiters  []chan<- error  // of the next flush
	away     bool            // the last write did not reach the home slot
	closed   bool
}

// coalesced is what a Coalescer needs of a Set.
type coalesced interface {
	Apply(ctx context.Context, d Delta) error
	resync(ctx context.Context, op string, slots []uint16) error
}

// writeTime is what a write may take apart from waiting for slots that fail. A
// delta to all slots takes well under a second.
const writeTime = 10 * time.Second

// NewCoalescer starts a Coalescer of set. Close must be called to end it.
func NewCoalescer(set *Set, opts *CoalescerOptions) (*Coalescer, error) {
	if set == nil {
		return nil, errors.New("replset: NewCoalescer: the set is nil")
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	// A tick need not wait long for slots that fail, since the next one retries.
	brisk := set.opts
	brisk.Patience = min(brisk.Patience, o.Tick)
	quick, err := New(set.backend, set.name, &brisk)
	if err != nil {
		return nil, err
	}
	// The home slot and the others may each use up the patience.
	return newCoalescer(set, quick, 2*set.opts.Patience+writeTime, o), nil
}

func newCoalescer(patient, brisk coalesced, bound time.Duration, opts CoalescerOptions) *Coalescer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Coalescer{
		opts: opts, patient: patient, brisk: brisk, bound: bound,
		wake: make(chan struct{}, 1), done: make(chan struct{}), cancel: cancel,
		pending: map[string]bool{},
	}
	go c.run(ctx)
	return c
}

// Add buffers members for addition by the next tick. It does no I/O. After
// Close it returns ErrCoalescerClosed, and when the buffer is full
// ErrCoalescerFull; either way nothing of the call was taken.
func (c *Coalescer) Add(members ...string) error { return c.buffer("add", true, members) }

// Remove buffers members for removal, as Add does for addition.
func (c *Coalescer) Remove(members ...string) error { return c.buffer("remove", false, members) }

func (c *Coalescer) buffer(op string, add bool, members []string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("replset: %s: %w: make another to go on", op, ErrCoalescerClosed)
	}
	if room := c.opts.MaxPending - c.size; len(members) > room && c.unseen(members) > room {
		return fmt.Errorf("replset: %s: %w: %d members are buffered of at most %d (MaxPending): drop the change, or try again when the cluster is back",
			op, ErrCoalescerFull, c.size, c.opts.MaxPending)
	}
	for _, m := range members {
		if _, replaced := c.pending[m]; replaced {
			c.absorbed++
		} else if _, flies := c.flying[m]; !flies {
			c.size++
		}
		c.pending[m] = add
	}
	if c.early() {
		c.rouse()
	}
	return nil
}

// unseen counts the members that are not buffered.
func (c *Coalescer) unseen(members []string) int {
	n := 0
	for _, m := range unique(members) {
		_, waits := c.pending[m]
		_, flies := c.flying[m]
		if !waits && !flies {
			n++
		}
	}
	return n
}

// early reports whether a flush is due before its tick. A cluster that is away
// is not asked more often than that.
func (c *Coalescer) early() bool { return len(c.pending) >= c.opts.FlushAt && !c.away }

// rouse starts a flush now, or after the one under way.
func (c *Coalescer) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Pending is how many members have a change that is not known to be written,
// those of a write under way included.
func (c *Coalescer) Pending() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// Flush waits for the flush under way, if any, and then writes the rest now,
// with the set's whole patience. With nil, every slot holds every change that
// was accepted before the call, or a newer one. The error is Set.Apply's: a
// *WriteError names the slots that are behind, and any other means that the
// changes are still buffered; the ticks go on trying either way.
//
// When ctx ends, Flush stops waiting; the write goes on. After Close it returns
// what Close did.
func (c *Coalescer) Flush(ctx context.Context) error {
	answer := make(chan error, 1)
	c.mu.Lock()
	c.waiters = append(c.waiters, answer)
	c.rouse()
	c.mu.Unlock()
	select {
	case err := <-answer:
		return err
	case <-c.done:
		return c.last
	case <-ctx.Done():
		return fmt.Errorf("replset: flush: stopped waiting, the changes stay buffered until they are written: %w", ctx.Err())
	}
}

// Close stops the ticks, writes what is buffered, with the set's whole patience,
// and ends the goroutine. The error is that last write's: a *WriteError when
// some slots are behind, or an *UnwrittenError when members were not written.
//
// When ctx ends first, Close cuts the write off and returns at once; the
// goroutine ends as soon as the backend returns. Every call returns the same,
// unless its ctx ends before the work does.
func (c *Coalescer) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.rouse()
	c.mu.Unlock()
	select {
	case <-c.done:
		return c.last
	case <-ctx.Done():
	}
	c.cancel()
	select {
	case <-c.done: // both were ready
		return c.last
	default:
		return &UnwrittenError{Members: c.Pending(), Err: ctx.Err()}
	}
}
