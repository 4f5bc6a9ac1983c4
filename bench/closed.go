package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// slice is a stretch of a closed loop in which all workers do the same variant.
type slice struct {
	variant int
	round   int32
	ops     int64 // over all workers
	until   int64 // nanoseconds since the start of the run
}

const unlimited = math.MaxInt64

// closed runs the closed loop. One variant is one long slice. Several take turns in short slices, whose order is drawn
// anew every turn: a disturbance longer than a few milliseconds then hits all variants alike.
func (r *run) closed(ctx context.Context) {
	crew := r.newCrew(ctx)
	defer crew.dismiss()
	rng := rand.New(rand.NewPCG(r.o.Seed, 1))
	l := r.o.Load

	if l.WarmUp > 0 {
		r.setPhase(PhaseWarmUp)
		r.turns(ctx, crew, rng, warmUpRound, nil, int64(l.WarmUp), int64(l.WarmUp))
	}
	r.begin(r.now())
	r.setPhase(PhaseMeasure)
	start, rounds := r.origin.Load(), 1
	if len(r.subjects) > 1 {
		rounds = r.o.Rounds
	}
	for round := range rounds {
		var quota []int64
		if l.Ops > 0 {
			quota = make([]int64, len(r.subjects))
			for v := range quota {
				quota[v] = share(share(l.Ops, len(quota), v), rounds, round)
			}
		}
		end, length := int64(unlimited), int64(unlimited)
		if l.Duration > 0 {
			length = int64(l.Duration) / int64(rounds)
			end = start + length*int64(round+1)
		}
		r.turns(ctx, crew, rng, int32(round), quota, end, length)
	}
}

// turns lets each variant have its slice, again and again, until end or until quota (nil: none) is used up.
func (r *run) turns(ctx context.Context, crew *crew, rng *rand.Rand, round int32, quota []int64, end, length int64) {
	n := len(r.subjects)
	size := int64(r.o.SliceOps) * int64(r.o.Load.Workers)
	if n == 1 {
		size = unlimited
	} else if length != unlimited {
		// Slow operations must not make one slice take longer than its part of the round.
		length /= int64(n)
	}
	for ctx.Err() == nil {
		for _, v := range rng.Perm(n) {
			ops, until := size, end
			if n > 1 {
				until = unlimited
				if length != unlimited {
					until = r.now() + length
				}
			}
			if quota != nil {
				if ops = min(ops, quota[v]); ops == 0 {
					continue
				}
			}
			done := crew.do(slice{variant: v, round: round, ops: ops, until: until})
			if quota != nil {
				quota[v] -= done
			}
		}
		if r.now() >= end || quota != nil && slices.Max(quota) == 0 {
			return
		}
	}
}

// share splits n into parts that differ by at most one.
func share(n int64, parts, i int) int64 {
	s := n / int64(parts)
	if int64(i) < n%int64(parts) {
		s++
	}
	return s
}

// crew is the workers of a closed loop. The first one works in the caller's goroutine, so that one worker alone never
// waits for another goroutine.
type crew struct {
	r     *run
	ctx   context.Context
	start []chan slice
	done  []int64
	wg    sync.WaitGroup
}

func (r *run) newCrew(ctx context.Context) *crew {
	n := r.o.Load.Workers
	c := &crew{r: r, ctx: ctx, start: make([]chan slice, n), done: make([]int64, n)}
	for i := 1; i < n; i++ {
		ch := make(chan slice)
		c.start[i] = ch
		go func() {
			for s := range ch {
				c.work(i, s)
				c.wg.Done()
			}
		}()
	}
	return c
}

func (c *crew) dismiss() {
	for _, ch := range c.start[1:] {
		close(ch)
	}
}

// do runs one slice and returns how many operations it did.
func (c *crew) do(s slice) int64 {
	c.r.setVariant(s.variant)
	began := c.r.now()
	c.wg.Add(len(c.start) - 1)
	for _, ch := range c.start[1:] {
		ch <- s
	}
	c.work(0, s)
	c.wg.Wait()
	if s.round != warmUpRound {
		c.r.busy[s.variant] += time.Duration(c.r.now() - began)
	}
	var n int64
	for _, d := range c.done {
		n += d
	}
	return n
}

func (c *crew) work(i int, s slice) {
	w := c.r.workers[i]
	n := s.ops
	if n != unlimited {
		n = share(n, len(c.start), i)
	}
	if batch := w.run.subjects[s.variant].Batch; batch != nil {
		c.done[i] = c.batch(w, s, batch, int(min(n, int64(w.run.o.SliceOps))))
		return
	}
	var done int64
	for done < n && c.ctx.Err() == nil {
		kind := w.nextKind(s.variant)
		op := w.ops(s.variant)[kind]
		start := c.r.now()
		err := op(c.ctx)
		end := c.r.now()
		w.finish(c.ctx, sample{intended: start, start: start, end: end, round: s.round, variant: uint8(s.variant), kind: kind}, err)
		done++
		if end >= s.until {
			break
		}
	}
	c.done[i] = done
}

// batch has the slice's operations done elsewhere. Its result tells how long each took, and not when: they count as done
// when it arrives.
func (c *crew) batch(w *worker, s slice, do func(context.Context, int) (*Batch, error), ops int) int64 {
	b, err := do(c.ctx, ops)
	if err != nil {
		if c.ctx.Err() == nil {
			c.r.abort(fmt.Errorf("variant %q: %w", c.r.subjects[s.variant].name, err))
		}
		return 0
	}
	end := c.r.now()
	for _, took := range b.Took {
		start := end - int64(took)
		w.finish(c.ctx, sample{intended: start, start: start, end: end, round: s.round, variant: uint8(s.variant)}, nil)
	}
	for _, err := range b.Errs {
		w.finish(c.ctx, sample{end: end, round: s.round, variant: uint8(s.variant)}, err)
	}
	return int64(len(b.Took) + len(b.Errs))
}
