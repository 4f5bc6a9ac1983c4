package replset

import (
	"fmt"
	"time"
)

// CoalescerOptions of a Coalescer. The zero value, and a nil pointer, are
// usable.
type CoalescerOptions struct {
	// Tick is the time between two writes, and the greater part of how late a
	// reader may be. 0 means 250 ms.
	Tick time.Duration

	// FlushAt is how many buffered members start a write before its tick, so
	// that a burst makes several deltas of moderate size and not one that holds
	// up the servers. 0 means 1000, or MaxPending if that is less. MaxPending
	// here leaves everything to the ticks.
	FlushAt int

	// MaxPending bounds the members that are buffered while the cluster is
	// away. 0 means 1,000,000. A buffered member costs its own bytes and about 40
	// more, and some 40 again during a write.
	MaxPending int

	// OnFlush, if set, is told of each flush, one call at a time, before the
	// next one starts. It may call Add, Remove and Pending, but neither Flush
	// nor Close, which would wait for it.
	OnFlush func(FlushStats)
}

// FlushStats is what became of one flush. A change is one member of an Add or
// a Remove; each one accepted is counted once, in Added, Removed or Absorbed of
// some flush, or is still pending.
type FlushStats struct {
	Added       int           // changes written, whether or not they changed the set
	Removed     int           // likewise
	Absorbed    int           // changes since the last flush that a later one of the same member replaced
	Took        time.Duration // for the flush, without the wait for its tick
	FailedSlots int           // slots that are behind now; the next flush retries them
	Pending     int           // members that are buffered now
	Err         error         // what Set.Apply said: with a *WriteError the changes are written and some slots are behind; with any other they are buffered again
}

const (
	defaultTick       = 250 * time.Millisecond
	defaultFlushAt    = 1000
	defaultMaxPending = 1_000_000
)

func (o *CoalescerOptions) withDefaults() (CoalescerOptions, error) {
	var opts CoalescerOptions
	if o != nil {
		opts = *o
	}
	switch {
	case opts.Tick < 0:
		return opts, fmt.Errorf("replset: NewCoalescer: Tick is %v: give a positive duration, or 0 for %v", opts.Tick, defaultTick)
	case opts.FlushAt < 0:
		return opts, fmt.Errorf("replset: NewCoalescer: FlushAt is %d: give a number of members, or 0 for %d", opts.FlushAt, defaultFlushAt)
	case opts.MaxPending < 0:
		return opts, fmt.Errorf("replset: NewCoalescer: MaxPending is %d: give a number of members, or 0 for %d", opts.MaxPending, defaultMaxPending)
	}
	if opts.Tick == 0 {
		opts.Tick = defaultTick
	}
	if opts.MaxPending == 0 {
		opts.MaxPending = defaultMaxPending
	}
	if opts.FlushAt == 0 {
		opts.FlushAt = min(defaultFlushAt, opts.MaxPending)
	}
	if opts.FlushAt > opts.MaxPending {
		return opts, fmt.Errorf("replset: NewCoalescer: FlushAt %d is over MaxPending %d, so it would never be reached: lower FlushAt, or raise MaxPending",
			opts.FlushAt, opts.MaxPending)
	}
	return opts, nil
}
