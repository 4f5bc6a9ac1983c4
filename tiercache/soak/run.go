package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/shardkit/shardkit/harness"
)

// A run is a Run under way.
type run struct {
	opts    *Options
	program string
	truth   *os.File
	shards  *harness.Shards
	routes  [][]*harness.Route // of each process to each shard, and the spare one
	starter starter

	mu        sync.Mutex
	history   *History
	processes []*process
	joined    []bool // the processes that have added the spare shard
	failed    int
	now       []Step
}

// Run starts shards and processes, breaks them by a schedule, and returns what
// happened, for Check. Nothing that it started is left when it returns.
//
// An error means that the run did not come about as it should, which says
// nothing about the subject. With ctx's, there is the history so far.
func Run(ctx context.Context, o *Options) (*History, error) { return newRun(ctx, o, &run{}) }

func newRun(ctx context.Context, o *Options, r *run) (_ *History, err error) {
	opts, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	*r = run{opts: opts, program: opts.Worker, history: &History{}, processes: make([]*process, opts.Processes), joined: make([]bool, opts.Processes), starter: newStarter()}
	defer close(r.starter)
	if r.program == "" {
		if r.program, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("soak: %w", err)
		}
	}
	if r.truth, err = newTruth(orderedKeys + racingKeys); err != nil {
		return nil, err
	}
	defer r.truth.Close()
	r.shards, err = harness.StartShards(ctx, harness.Options{Shards: opts.Shards + 1, Private: true, Server: opts.Server})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.shards.Close()) }()
	for p := range opts.Processes {
		r.routes = append(r.routes, nil)
		for _, n := range r.shards.Nodes() {
			route, err := n.Route(fmt.Sprintf("process-%d", p+1))
			if err != nil {
				return nil, err
			}
			r.routes[p] = append(r.routes[p], route)
		}
	}
	defer r.killAll()
	for p := range opts.Processes {
		if err := r.start(ctx, p, 0); err != nil {
			return nil, err
		}
	}
	if err := r.order(ctx, "start"); err != nil {
		return nil, err
	}
	h := r.header()
	r.take(&line{Header: &h})
	if err := r.load(ctx); err != nil || ctx.Err() != nil {
		return r.history, errors.Join(ctx.Err(), err)
	}
	return r.history, r.settle(ctx)
}

// newTruth is the file of a source of truth of n versions. It has no name, so that
// it is gone with the last process.
func newTruth(n int) (*os.File, error) {
	f, err := os.CreateTemp("", "shardkit-soak-")
	if err == nil {
		err = errors.Join(os.Remove(f.Name()), f.Truncate(int64(8*n)))
	}
	if err != nil {
		return nil, fmt.Errorf("soak: make the source of truth: %w", err)
	}
	return f, nil
}

func (r *run) header() Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.opts
	return Header{
		Seed: o.Seed, Subject: o.Subject, Client: o.Client, Server: r.shards.Version().String(),
		Processes: o.Processes, Shards: o.Shards, Duration: o.Duration, Start: monotonic(),
		Ordered: orderedKeys, Racing: racingKeys, Owners: r.history.Header.Owners, Moving: r.history.Header.Moving, Bounds: o.bounds(),
	}
}

// take adds a line to the history.
func (r *run) take(l *line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.Owners != nil && r.history.Header.Owners == nil {
		r.history.Header.Owners, r.history.Header.Moving = l.Owners, l.Moving
	}
	if l.Op != nil && l.Op.Outcome == Unknown {
		r.failed++
	}
	r.history.add(l)
}

// start starts a process, and waits until it is ready.
func (r *run) start(ctx context.Context, number, life int) error {
	c := config{
		Process: number, Life: life, Processes: r.opts.Processes, Seed: r.opts.Seed,
		Subject: r.opts.Subject, Client: r.opts.Client, Addrs: map[string]string{},
		Ordered: orderedKeys, Racing: racingKeys, Heartbeat: r.opts.Heartbeat, Loader: r.opts.Loader, Rate: r.opts.Rate, Margin: r.opts.Margin,
	}
	for i, route := range r.routes[number] {
		c.Addrs[r.shards.Nodes()[i].Name()] = route.Addr()
	}
	c.Spare = r.shards.Nodes()[r.opts.Shards].Name()
	r.mu.Lock()
	c.Joined = r.joined[number]
	r.mu.Unlock()
	p, err := startProcess(r.starter, r.program, c, r.truth, r.take)
	if err != nil {
		return err
	}
	if err = p.order(ctx, "ready"); err != nil {
		if !errors.Is(err, errGone) {
			p.kill()
		}
		err = fmt.Errorf("%w: %s", err, p.stderr.String())
	}
	r.mu.Lock()
	r.processes[number] = p
	r.mu.Unlock()
	return err
}

// startAgain starts a process that was killed. If it ends by itself, that is told.
func (r *run) startAgain(ctx context.Context, number int) error {
	err := r.start(ctx, number, r.process(number).Life+1)
	if err == nil {
		err = r.process(number).order(ctx, "start")
	}
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

func (r *run) process(number int) *process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.processes[number]
}

// order has all processes do something at one time. Those that are gone have been
// reported.
func (r *run) order(ctx context.Context, word string) error {
	errs := make([]error, r.opts.Processes)
	var wg sync.WaitGroup
	for number := range r.opts.Processes {
		wg.Go(func() {
			if err := r.process(number).order(ctx, word); !errors.Is(err, errGone) {
				errs[number] = err
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (r *run) killAll() {
	for number := range r.opts.Processes {
		if p := r.process(number); p != nil {
			cont(p.cmd.Process)
			p.kill()
		}
	}
}

// load carries out the schedule, while the processes are at work.
func (r *run) load(ctx context.Context) error {
	steps := r.opts.Schedule
	if steps == nil {
		steps = r.opts.plan()
	}
	began := time.Now()
	ctx, cancel := context.WithDeadlineCause(ctx, began.Add(r.opts.Duration+time.Minute), errors.New("soak: a fault does not end"))
	defer cancel()
	lanes := map[[2]int][]Step{} // one after the other within each
	for _, s := range steps {
		lane := s.lane()
		lanes[lane] = append(lanes[lane], s)
	}
	errs := make(chan error, len(lanes))
	var wg sync.WaitGroup
	for _, lane := range lanes {
		wg.Go(func() {
			for _, s := range lane {
				sleep(ctx, time.Until(began.Add(s.At)))
				if ctx.Err() != nil {
					return
				}
				if err := r.carryOut(ctx, s); err != nil {
					errs <- fmt.Errorf("soak: %v: %w", s, err)
					cancel()
					return
				}
			}
		})
	}
	wg.Go(func() {
		for left := r.opts.Duration; left > 0 && ctx.Err() == nil; left = time.Until(began.Add(r.opts.Duration)) {
			sleep(ctx, min(left, time.Second))
			r.progress(time.Since(began), false)
		}
	})
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

func (r *run) underway(s Step, begins bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if begins {
		r.now = append(r.now, s)
	} else if i := slices.Index(r.now, s); i >= 0 {
		r.now = slices.Delete(r.now, i, i+1)
	}
}

func (r *run) progress(elapsed time.Duration, settling bool) {
	if r.opts.Progress == nil {
		return
	}
	r.mu.Lock()
	p := Progress{
		Elapsed: min(elapsed, r.opts.Duration), Duration: r.opts.Duration, Ops: len(r.history.Ops), Failed: r.failed,
		Faults: len(r.history.Faults) + len(r.now), Now: slices.Clone(r.now), Settling: settling,
	}
	r.mu.Unlock()
	r.opts.Progress(p)
}

// settle lets all come to rest, and has the processes read everything once more.
func (r *run) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	r.progress(r.opts.Duration, true)
	if err := r.order(ctx, "stop"); err != nil {
		return err
	}
	sleep(ctx, r.rest())
	for _, word := range []string{"final", "close"} {
		if err := r.order(ctx, word); err != nil {
			return err
		}
	}
	return nil
}

// rest is how long it takes until nothing of a fault has an effect any more.
func (r *run) rest() time.Duration {
	b := r.opts.bounds()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.history.Faults {
		if r.history.Faults[i].partial() {
			return b.Cut + b.Lost
		}
	}
	return 2 * b.Lost
}
