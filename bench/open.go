package bench

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// schedule hands out the intended starts of an open loop. Because every start follows from its number, the backlog is
// two counters: it cannot overflow, and a server that hangs never holds the generator up.
type schedule struct {
	every   float64 // nanoseconds
	total   int64
	warm    int64 // the first ones, which are not measured
	rounds  int64
	workers int64
	mu      sync.Mutex
	ready   sync.Cond
	due     int64 // how many the generator has released
	taken   int64
	stopped bool
	peak    int64 // the longest backlog
}

func newSchedule(l Load, rounds int) *schedule {
	n, every := l.intents()
	warm := int64(l.WarmUp.Seconds() * l.Rate)
	s := &schedule{every: every, total: n + warm, warm: warm, rounds: int64(rounds), workers: int64(l.Workers)}
	s.ready.L = &s.mu
	return s
}

// at is when operation i should start, in nanoseconds since the start of the run.
func (s *schedule) at(i int64) int64 { return int64(float64(i) * s.every) }

func (s *schedule) round(i int64) int32 {
	if i < s.warm {
		return warmUpRound
	}
	// By way of floats, as the product may exceed an int64 in very long runs.
	return int32(min(float64(i-s.warm)/float64(s.total-s.warm)*float64(s.rounds), float64(s.rounds-1)))
}

func (s *schedule) release(due int64) {
	s.mu.Lock()
	more := due - s.due
	s.due = due
	s.peak = max(s.peak, s.due-s.taken)
	s.mu.Unlock()
	if due == s.total {
		// Those that wait for work must learn that there will be none.
		s.ready.Broadcast()
		return
	}
	for range min(more, s.workers) {
		s.ready.Signal()
	}
}

// next blocks until an operation is due, and reports false when there will be none.
func (s *schedule) next() (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.taken == s.due && s.due < s.total && !s.stopped {
		s.ready.Wait()
	}
	if s.taken == s.due || s.stopped {
		return 0, false
	}
	s.taken++
	return s.taken - 1, true
}

func (s *schedule) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.ready.Broadcast()
}

// generate releases every operation at its time, in a thread of its own, and returns how late it was. It returns early
// when ctx ends.
func (r *run) generate(ctx context.Context, s *schedule) *histogram {
	// Never unlocked: the thread's timers are changed, so it ends with the goroutine.
	runtime.LockOSThread()
	sharpenTimers()
	late := newHistogram(r.o.MaxLatency)
	var due int64
	for due < s.total {
		if wait := s.at(due) - r.now(); wait > 0 {
			if ctx.Err() != nil {
				break
			}
			r.o.pace(time.Duration(wait))
			continue
		}
		now := r.now()
		for due < s.total && s.at(due) <= now {
			if due >= s.warm {
				late.record(now - s.at(due))
			}
			due++
		}
		s.release(due)
		if due > s.warm {
			r.setPhase(PhaseMeasure)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return late
}

// open runs the open loop: one schedule, each of whose operations goes to a variant at random, so that whatever happens
// to the machine happens to all variants.
func (r *run) open(ctx context.Context) {
	s := newSchedule(r.o.Load, max(len(r.store.rounds), 1))
	r.setPhase(PhaseWarmUp)
	r.begin(s.at(s.warm))

	opCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	unhook := context.AfterFunc(opCtx, s.stop)
	defer unhook()

	var wg sync.WaitGroup
	for _, w := range r.workers {
		wg.Go(func() {
			for {
				i, ok := s.next()
				if !ok {
					return
				}
				draw := mix(r.o.Seed, uint64(i))
				v := int(draw % uint64(len(r.subjects)))
				deck := r.subjects[v].deck
				kind := deck[mix(draw, 1)%uint64(len(deck))]
				op := w.ops(v)[kind]
				start := r.now()
				err := op(opCtx)
				end := r.now()
				w.finish(opCtx, sample{intended: s.at(i), start: start, end: end, round: s.round(i), variant: uint8(v), kind: kind}, err)
			}
		})
	}
	generated := make(chan *histogram, 1)
	go func() { generated <- r.generate(ctx, s) }()
	late := <-generated
	// The servers get a while to answer what was asked. A hung one would not in any time.
	drain := time.AfterFunc(r.o.Load.Drain, cancel)
	wg.Wait()
	drain.Stop()

	s.mu.Lock()
	defer s.mu.Unlock()
	r.generator = &Generator{
		Intended:   max(s.due-s.warm, 0),
		MaxBacklog: s.peak,
		Lateness:   late.latency(),
	}
	r.generator.Lateness.HDR = late.encode()
}
