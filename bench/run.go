package bench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// ErrInterrupted is found in Run's error when its context ended before the run did. The result is there, marked partial.
var ErrInterrupted = errors.New("bench: run interrupted, the result is partial")

// Run puts the scenario's variants under load and returns what it saw.
//
// With several variants the baseline, which is the first one, runs a second time under its name with ' appended. How much
// those two differ is what noise alone does: the floor of every comparison.
//
// Bad arguments, a failed Setup and a context that has already ended return a nil result. When ctx ends later, the result
// so far comes with an error that holds ErrInterrupted and the context's own; so it does when a Batch fails. An operation that fails is counted and does
// not end the run. Everything that was set up is torn down before Run returns; an error of a tear-down comes with the result.
func Run(ctx context.Context, s Scenario, o *Options) (*Result, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	variants := slices.Clone(s.Variants)
	if len(variants) > 1 {
		twin := variants[0]
		twin.Name = twinName(twin.Name)
		variants = append(variants, twin)
	}
	opts, err := o.resolve(len(variants))
	if err != nil {
		return nil, err
	}
	r := &run{scenario: s, o: &opts, base: time.Now()}
	r.setPhase(PhaseSetUp)

	if err = r.setUp(ctx, variants); err != nil {
		return nil, errors.Join(err, r.tearDown(ctx))
	}
	ctx, r.abort = context.WithCancelCause(ctx)
	defer r.abort(nil)
	res := r.measure(ctx)
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", ErrInterrupted, context.Cause(ctx))
	}
	return res, errors.Join(err, r.tearDown(ctx))
}

// run is one run in progress.
type run struct {
	scenario Scenario
	o        *Options
	base     time.Time // when the first operation may start

	subjects  []*subject
	workers   []*worker
	failures  []*failures     // by variant
	busy      []time.Duration // by variant: time under closed-loop load
	store     *store
	generator *Generator // open loop only
	counters  []map[string]float64
	marks     []Mark

	abort       context.CancelCauseFunc
	interrupted bool
	phase       atomic.Pointer[Phase]
	current     atomic.Pointer[string]
	origin      atomic.Int64 // when measuring began, nanoseconds since base
	reported    float64
}

// warmUpRound is the round of operations that are not measured.
const warmUpRound = -1

func (r *run) now() int64 { return int64(time.Since(r.base)) }

func (r *run) setPhase(p Phase) {
	if old := r.phase.Load(); old == nil || *old != p {
		r.phase.Store(&p)
	}
}

func (r *run) setVariant(v int) { r.current.Store(&r.subjects[v].name) }

func (r *run) begin(origin int64) {
	r.origin.Store(origin)
	r.store.begin(origin)
}

func (r *run) setUp(ctx context.Context, variants []Variant) error {
	for i, v := range variants {
		if ctx.Err() != nil {
			return fmt.Errorf("bench: ended before anything was measured: %w", context.Cause(ctx))
		}
		if r.o.Progress != nil {
			r.o.Progress(Progress{Scenario: r.scenario.Name, Phase: PhaseSetUp, Variant: v.Name})
		}
		s, err := setUp(ctx, v, r.o.Load.Workers)
		if err != nil {
			return err
		}
		s.twin = len(variants) > 1 && i == len(variants)-1
		r.subjects = append(r.subjects, s)
		if s.Batch != nil && (r.o.Load.Mode == Open || r.o.Load.Workers > 1) {
			return fmt.Errorf("bench: variant %q does batches: use a closed loop of one worker", v.Name)
		}
		r.failures = append(r.failures, &failures{})
	}
	return nil
}

// tearDown takes the subjects down, last one first, once.
func (r *run) tearDown(ctx context.Context) error {
	var errs []error
	for _, s := range slices.Backward(r.subjects) {
		errs = append(errs, s.tearDown(ctx))
	}
	r.subjects = nil
	return errors.Join(errs...)
}

func (r *run) measure(ctx context.Context) *Result {
	kinds := make([]int, len(r.subjects))
	for v, s := range r.subjects {
		kinds[v] = len(s.Kinds)
	}
	rounds := 0
	if len(r.subjects) > 1 {
		rounds = r.o.Rounds
	}
	r.store = newStore(r.o, rounds, kinds)
	r.busy = make([]time.Duration, len(r.subjects))
	r.current.Store(new(string))
	for i := range r.o.Load.Workers {
		r.workers = append(r.workers, &worker{id: i, run: r, rec: newRecorder(r.store)})
	}
	// What setting up left behind must not be collected while measuring.
	runtime.GC()

	started := time.Now()
	r.base = started
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		r.monitor(stop)
	}()
	if r.o.Load.Mode == Open {
		r.open(ctx)
	} else {
		r.closed(ctx)
	}
	ended := r.now()
	r.flush()
	r.current.Store(new(string))
	if !r.o.SkipCounters && ctx.Err() == nil {
		r.setPhase(PhaseCount)
		r.count(ctx)
	}
	close(stop)
	<-stopped
	if ctx.Err() != nil {
		r.interrupted = true
		r.mark(Partial, "interrupted after %v: %v", time.Duration(ended).Round(time.Millisecond), context.Cause(ctx))
	}
	res := r.result(started, ended)
	r.setPhase(PhaseDone)
	r.report()
	return res
}

func (r *run) flush() {
	for _, w := range r.workers {
		w.rec.flush()
	}
}

func (r *run) mark(kind MarkKind, format string, args ...any) {
	r.marks = append(r.marks, Mark{Kind: kind, Reason: fmt.Sprintf(format, args...)})
}

// worker does one operation at a time.
type worker struct {
	id  int
	run *run
	rec *recorder
	n   uint64
}

func (w *worker) ops(variant int) []Op { return w.run.subjects[variant].ops[w.id] }

func (w *worker) nextKind(variant int) uint8 {
	deck := w.run.subjects[variant].deck
	if len(deck) == 1 {
		return 0
	}
	w.n++
	return deck[mix(w.run.o.Seed^uint64(w.id)<<32, w.n)%uint64(len(deck))]
}

// finish records what became of an operation.
func (w *worker) finish(ctx context.Context, s sample, err error) {
	switch {
	case s.round == warmUpRound:
	case err == nil:
		w.rec.add(s)
	case ctx.Err() != nil:
		// Cut off by the end of the run, which is no fault of the variant.
	default:
		w.run.failures[s.variant].add(w.run.o.Classify(err), err)
	}
}

// mix is SplitMix64's n-th number from seed: a draw that needs no state shared by workers.
func mix(seed, n uint64) uint64 {
	z := seed + (n+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
