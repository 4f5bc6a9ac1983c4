package replset

import (
	"context"
	"errors"
	"time"
)

// deltaMost bounds the members of one delta. What piled up while the cluster was
// away goes out in several, each of which takes a replica about 1 ms.
const deltaMost = 10_000

// run flushes at each tick, and when it is woken, until Close.
func (c *Coalescer) run(ctx context.Context) {
	defer close(c.done)
	defer c.cancel()
	ticker := time.NewTicker(c.opts.Tick)
	defer ticker.Stop()
	for {
		ticked := false
		select {
		case <-ticker.C:
			ticked = true
		case <-c.wake:
		}
		b, due := c.take(ticked)
		if !due {
			continue
		}
		if !ticked {
			ticker.Reset(c.opts.Tick)
		}
		err := c.flush(ctx, b)
		for _, w := range b.waiters {
			w <- err
		}
		if b.last {
			if n := c.Pending(); n > 0 {
				err = &UnwrittenError{Members: n, Err: err}
			}
			c.last = err
			return
		}
	}
}

// batch is what a flush starts with, beside the changes in Coalescer.flying.
type batch struct {
	absorbed int
	waiters  []chan<- error
	last     bool
}

// take starts a flush: what is buffered now is written by it. It is not due when
// what woke the goroutine went with an earlier flush.
func (c *Coalescer) take(ticked bool) (b batch, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ticked && !c.closed && len(c.waiters) == 0 && !c.early() {
		return b, false
	}
	b = batch{absorbed: c.absorbed, waiters: c.waiters, last: c.closed}
	c.absorbed, c.waiters = 0, nil
	c.flying, c.pending = c.pending, map[string]bool{}
	return b, true
}

// flush writes the changes in flying, or, without any, the slots that are behind.
func (c *Coalescer) flush(ctx context.Context, b batch) error {
	if len(c.flying) == 0 && len(c.failed) == 0 {
		return nil
	}
	set := c.brisk
	if b.last || len(b.waiters) > 0 {
		set = c.patient
	}
	start := time.Now()
	stats := FlushStats{Absorbed: b.absorbed}
	if len(c.flying) == 0 {
		stats.Err = c.bounded(ctx, func(ctx context.Context) error { return set.resync(ctx, "resync", c.failed) })
		c.reached(stats.Err)
	}
	for len(c.flying) > 0 {
		d := c.next()
		stats.Err = c.bounded(ctx, func(ctx context.Context) error { return set.Apply(ctx, d) })
		if !c.reached(stats.Err) {
			break
		}
		stats.Added += len(d.Add)
		stats.Removed += len(d.Remove)
		c.written(d)
	}
	stats.Pending = c.settle()
	stats.FailedSlots = len(c.failed)
	stats.Took = time.Since(start)
	if c.opts.OnFlush != nil {
		c.opts.OnFlush(stats)
	}
	return stats.Err
}

// bounded runs one write, which a cluster that does not answer cannot hold up
// for ever. The bound is generous: a slot that a write is cut off from costs a
// copy of the whole set instead of a delta.
func (c *Coalescer) bounded(ctx context.Context, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.bound)
	defer cancel()
	return write(ctx)
}

// reached reports whether a write got as far as the home slot, and notes the
// slots that are behind after it: only those it failed at, since a delta brings
// the slots that missed an earlier one up to date.
func (c *Coalescer) reached(err error) bool {
	var partial *WriteError
	if err != nil && !errors.As(err, &partial) {
		return false
	}
	c.failed = nil
	if partial != nil {
		for _, f := range partial.Failed {
			// Too few server replicas: the slot holds the write, and writing it again
			// would not bring them back.
			if !errors.Is(f, ErrUnderReplicated) {
				c.failed = append(c.failed, f.Slot)
			}
		}
	}
	return true
}

// next is a delta of changes in flying.
func (c *Coalescer) next() Delta {
	var d Delta
	for m, add := range c.flying {
		if add {
			d.Add = append(d.Add, m)
		} else {
			d.Remove = append(d.Remove, m)
		}
		if len(d.Add)+len(d.Remove) == deltaMost {
			break
		}
	}
	return d
}

// written takes the changes of d out of flying.
func (c *Coalescer) written(d Delta) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, members := range [][]string{d.Add, d.Remove} {
		for _, m := range members {
			delete(c.flying, m)
			if _, again := c.pending[m]; !again {
				c.size--
			}
		}
	}
}

// settle puts what the flush did not write back under the changes that came
// meanwhile, and returns how many members are buffered then.
func (c *Coalescer) settle() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away = len(c.flying) > 0; c.away {
		for m, add := range c.pending {
			if _, replaced := c.flying[m]; replaced {
				c.absorbed++
			}
			c.flying[m] = add
		}
		c.pending, c.flying = c.flying, nil
	}
	return c.size
}
