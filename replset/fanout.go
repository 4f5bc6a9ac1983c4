package replset

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"
)

// fanout takes one change to many slots, each node's by its own goroutine, in
// steps short enough not to hold up the node's other clients.
type fanout struct {
	set      *Set
	open     func(addr string) stepper
	c        *change
	pending  []uint16
	progress *Progress

	mu     sync.Mutex
	failed map[uint16]error
	behind []uint16
	newest int64 // greatest number seen above c's
	retry  []uint16
}

func newFanout(s *Set, l *ladder, c *change, slots []uint16) *fanout {
	return &fanout{
		set: s, c: c, pending: slots,
		open:     func(addr string) stepper { return l.node(c, addr) },
		progress: &Progress{Op: c.op, Done: len(s.slots.list) - len(slots), Total: len(s.slots.list)},
		failed:   map[uint16]error{},
	}
}

// run passes over the slots until each one is done, has failed for good, or
// patience is over.
func (f *fanout) run(ctx context.Context) {
	var deadline time.Time
	for wait := backoff(0); ; wait++ {
		f.pass(ctx)
		if deadline.IsZero() { // a first pass may take long, and is no repetition
			deadline = time.Now().Add(f.set.opts.Patience)
		}
		if len(f.retry) == 0 || time.Now().After(deadline) || !wait.sleep(ctx) {
			return
		}
		f.pending, f.retry = f.retry, nil
	}
}

// pass tries each pending slot once.
func (f *fanout) pass(ctx context.Context) {
	topo, err := f.set.topologyOf(ctx, f.pending)
	if err != nil {
		for _, slot := range f.pending {
			f.outcome(slot, err)
		}
		return
	}
	for _, slot := range topo.orphan {
		f.outcome(slot, ErrNoOwner)
	}
	var wg sync.WaitGroup
	for addr, slots := range topo.nodes {
		wg.Go(func() { f.node(ctx, addr, slots) })
	}
	wg.Wait()
}

// node takes the change to one node's slots.
func (f *fanout) node(ctx context.Context, addr string, slots []uint16) {
	steps := f.open(addr)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		steps.end(ctx)
	}()
	size := newPace(f.c.weight(), f.set.opts.StepTime)
	var err error
	if size.network, err = f.roundTrip(ctx, f.set.nodeAt(addr), slots[0]); err != nil && unreachable([]error{err}) != nil {
		f.later(slots, err)
		return
	}
	for len(slots) > 0 {
		n := min(size.slots, len(slots))
		if ctx.Err() != nil {
			f.later(slots, ctx.Err())
			return
		}
		start := time.Now()
		outcomes := steps.step(ctx, slots[:n])
		size.took(time.Since(start))
		for i, err := range outcomes {
			f.outcome(slots[i], err)
		}
		slots = slots[n:]
		if err := unreachable(outcomes); err != nil {
			f.later(slots, err)
			return
		}
		f.report()
	}
}

// later gives up on the rest of a node's slots in this pass: each step would wait
// for the client's time-out again.
func (f *fanout) later(slots []uint16, err error) {
	for _, slot := range slots {
		f.outcome(slot, err)
	}
	f.report()
}

// trip is a round trip to a node, as it was last measured.
type trip struct {
	mu   sync.Mutex
	took time.Duration
	at   time.Time
}

// tripLife is how long it counts: a write every quarter of a second is not to wait for
// three more round trips each time.
const tripLife = time.Minute

// roundTrip is how long the node takes to answer next to nothing: the quickest of
// three times, since the first may have to dial, and any may wait for a processor.
func (f *fanout) roundTrip(ctx context.Context, n *node, slot uint16) (time.Duration, error) {
	n.trip.mu.Lock()
	took, at := n.trip.took, n.trip.at
	n.trip.mu.Unlock()
	if !at.IsZero() && time.Since(at) < tripLife {
		return took, nil
	}
	key := f.set.replicaKey(slot) + absentSuffix
	quickest := time.Duration(math.MaxInt64)
	for range 3 {
		start := time.Now()
		if _, err := f.set.backend.Do(ctx, key, []string{"EXISTS", key}); err != nil {
			return time.Since(start), err
		}
		quickest = min(quickest, time.Since(start))
	}
	n.trip.mu.Lock()
	defer n.trip.mu.Unlock()
	n.trip.took, n.trip.at = quickest, time.Now()
	return quickest, nil
}

// unreachable returns the error of a step for which no server spoke at all.
func unreachable(outcomes []error) error {
	for _, err := range outcomes {
		if err == nil || code(err) != "" || !transient(err) || errors.Is(err, errBehind) || errors.As(err, new(newerError)) {
			return nil
		}
	}
	return outcomes[0]
}

// outcome records what became of one slot.
func (f *fanout) outcome(slot uint16, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var newer newerError
	switch {
	case err == nil:
		f.done(slot)
	case errors.Is(err, errBehind):
		f.behind = append(f.behind, slot)
	case errors.As(err, &newer):
		f.newest = max(f.newest, int64(newer))
		f.done(slot)
	default:
		f.failed[slot] = err
		if scriptsRefused(err) {
			f.set.noEval.set()
			f.retry = append(f.retry, slot)
		} else if transient(err) || errors.Is(err, ErrNoOwner) {
			f.retry = append(f.retry, slot)
		}
	}
}

func (f *fanout) done(slot uint16) {
	delete(f.failed, slot)
	f.progress.Done++
}

func (f *fanout) fail(slot uint16, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed[slot] = err
}

func (f *fanout) report() {
	if f.set.opts.Progress == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.Failed = len(f.failed)
	f.set.opts.Progress(*f.progress)
}

// err is the write's result.
func (f *fanout) err() error {
	if len(f.failed) == 0 {
		return nil
	}
	e := &WriteError{Op: f.c.op, Number: f.c.number, Written: len(f.set.slots.list) - len(f.failed)}
	for slot, err := range f.failed {
		e.Failed = append(e.Failed, &SlotError{Slot: slot, Op: f.c.op, Err: explain(err)})
	}
	slices.SortFunc(e.Failed, func(a, b *SlotError) int { return int(a.Slot) - int(b.Slot) })
	return e
}

// pace sizes steps by the measured reply time, so that a node serves its other
// clients between two of them.
type pace struct {
	target  time.Duration
	slots   int
	network time.Duration // what of a reply's time is not the step's
	cost    time.Duration // of one replica, as the quickest of the last steps had it
}

const (
	stepFirst = 16
	stepMost  = 512
	costLeast = time.Microsecond // nothing is done to a replica in less
)

// newPace starts with few replicas where one alone is long: a member takes the
// server about 0.1 us.
func newPace(members int, target time.Duration) *pace {
	return &pace{target: target, slots: min(max(1, 10_000/max(members, 1)), stepFirst)}
}

// took adjusts the size after a step. A reply may be late because the machine was
// busy with something else; a step's own cost shows in the quickest. So a late
// one counts for a quarter more than the cost so far, and a node that is slow for
// good has its say after a few steps. No step takes less than the network does.
func (p *pace) took(d time.Duration) {
	p.network = min(p.network, d)
	cost := max(d-p.network, d/16) / time.Duration(p.slots)
	if p.cost > 0 {
		cost = min(cost, p.cost+p.cost/4)
	}
	p.cost = max(cost, costLeast)
	p.slots = min(max(int(p.target/p.cost), 1), p.slots*2, stepMost)
}
