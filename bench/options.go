package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Mode says what decides when an operation starts.
type Mode string

const (
	// Closed starts a worker's next operation when its last one ends. It measures what the workers can do, and hides
	// stalls: while the server hangs, nobody asks.
	Closed Mode = "closed"

	// Open starts operations on a fixed schedule, whatever became of the earlier ones, and counts latency from the
	// scheduled start. It measures what users see.
	Open Mode = "open"
)

// Load says how much is asked, how, and for how long.
type Load struct {
	// Mode is Closed by default.
	Mode Mode `json:"mode"`

	// Rate is the number of operations per second, over all variants. Open loop only, where it is required.
	Rate float64 `json:"rate,omitempty"`

	// Workers is how many operations may be in progress at a time: 1 by default in closed loop, 64 in open loop. In
	// open loop an operation whose time has come while all workers are busy waits in a backlog without a limit, and
	// the wait is part of its latency.
	Workers int `json:"workers"`

	// Duration is how long to measure. Zero means 10 seconds if Ops is zero too, else no limit. A closed loop runs
	// over by at most one slice of each variant.
	Duration time.Duration `json:"duration_ns,omitempty"`

	// Ops is how many operations to measure, over all variants. Zero means no limit. With Duration too, what comes
	// first ends the run.
	Ops int64 `json:"ops,omitempty"`

	// WarmUp is how long the same load runs before measuring, and is in no figure of the result. Zero means a tenth
	// of Duration, at most 1 second.
	WarmUp time.Duration `json:"warm_up_ns"`

	// SkipWarmUp measures from the first operation.
	SkipWarmUp bool `json:"-"`

	// Drain is how long an open loop waits, after its schedule has ended, for the backlog and what is in progress.
	// What is left then is counted and makes the result invalid. Zero means 10 seconds.
	Drain time.Duration `json:"drain_ns,omitempty"`
}

// Options tune a run. The zero value, or nil, measures one operation at a time for 10 seconds.
type Options struct {
	Load Load

	// Interval is the length of one entry of Result.Intervals. Zero means 1 second.
	Interval time.Duration

	// MaxLatency is the highest latency that is told apart. A higher one is counted as out of range, and makes the
	// result invalid. Zero means 10 minutes.
	MaxLatency time.Duration

	// Seed decides the order of variants, the mix of kinds and the bootstrap. Zero draws one; the result tells which.
	Seed uint64

	// Rounds is how many times variants are compared in a run. Zero means 9; at least 5.
	Rounds int

	// SliceOps is how many operations a worker does before a closed loop goes on to the next variant. Zero means 40.
	SliceOps int

	// Confidence of the intervals around ratios, between 0.5 and 1. Zero means 0.99.
	Confidence float64

	// Threshold is the smallest difference worth a verdict: 0.1 for 10 %, which is what zero means.
	Threshold float64

	// LatenessLimit is how late the open-loop generator may be, at its 99th percentile, before the result is marked
	// invalid. A tenth of the response p99 is always allowed. Zero means 1 ms.
	LatenessLimit time.Duration

	// MaxErrorShare is the share of a variant's operations that may fail before the result is marked invalid (failed
	// operations are in no percentile). Zero means 0.001.
	MaxErrorShare float64

	// Counters is sampled around slices of one variant, to tell what an operation costs the servers. May be nil.
	Counters CounterSource

	// CountOps is how many operations make one such slice. Zero means 400. A slice ends early after 200 ms.
	CountOps int

	// SkipCounters leaves out the counting slices, and with them allocations and bytes per operation.
	SkipCounters bool

	// Classify names the sort of an operation's error; failures are counted by it. Nil means DefaultClassify.
	Classify func(error) string

	// Progress is called about every 200 ms, and once at the end, never concurrently. May be nil.
	Progress func(Progress)

	pace pacer // tests replace the clock of the generator
}

const (
	countSlices  = 5
	countTime    = 200 * time.Millisecond
	tearDownTime = 10 * time.Second
	monitorEvery = 200 * time.Millisecond
)

func (o *Options) resolve(variants int) (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if err := c.refuseNegative(); err != nil {
		return Options{}, err
	}
	if err := c.Load.resolve(); err != nil {
		return Options{}, err
	}
	setDefault(&c.Interval, time.Second)
	setDefault(&c.MaxLatency, 10*time.Minute)
	setDefault(&c.Rounds, 9)
	setDefault(&c.SliceOps, 40)
	setDefault(&c.Confidence, 0.99)
	setDefault(&c.Threshold, 0.1)
	setDefault(&c.LatenessLimit, time.Millisecond)
	setDefault(&c.MaxErrorShare, 0.001)
	setDefault(&c.CountOps, 400)
	if c.Classify == nil {
		c.Classify = DefaultClassify
	}
	if c.pace == nil {
		c.pace = pace
	}
	if c.Seed == 0 {
		// JSON readers that keep numbers as doubles must be able to copy it.
		c.Seed = rand.Uint64N(1<<53-1) + 1
	}
	if err := c.refuseOutOfRange(variants); err != nil {
		return Options{}, err
	}
	return c, nil
}

func invalid(what string, got any, use string) error {
	return fmt.Errorf("bench: %s is %v: %s", what, got, use)
}

func (o *Options) refuseNegative() error {
	l := &o.Load
	durations := []struct {
		name string
		d    time.Duration
	}{
		{"Load.Duration", l.Duration}, {"Load.WarmUp", l.WarmUp}, {"Load.Drain", l.Drain}, {"Interval", o.Interval},
		{"MaxLatency", o.MaxLatency}, {"LatenessLimit", o.LatenessLimit},
	}
	for _, d := range durations {
		if d.d < 0 {
			return invalid(d.name, d.d, "use a positive duration, or zero for the default")
		}
	}
	counts := []struct {
		name string
		n    int64
	}{
		{"Load.Ops", l.Ops}, {"Load.Workers", int64(l.Workers)}, {"Rounds", int64(o.Rounds)},
		{"SliceOps", int64(o.SliceOps)}, {"CountOps", int64(o.CountOps)},
	}
	for _, n := range counts {
		if n.n < 0 {
			return invalid(n.name, n.n, "use a positive number, or zero for the default")
		}
	}
	return nil
}

func (o *Options) refuseOutOfRange(variants int) error {
	l := &o.Load
	switch {
	case o.Interval < 10*time.Millisecond:
		return invalid("Interval", o.Interval, "use at least 10 ms")
	case o.MaxLatency < time.Microsecond || o.MaxLatency > 24*time.Hour:
		return invalid("MaxLatency", o.MaxLatency, "use 1 µs to 24 h")
	case o.Rounds < 5 || o.Rounds > 1000:
		return invalid("Rounds", o.Rounds, "use 5 to 1000, fewer have no confidence interval")
	case !(o.Confidence >= 0.5 && o.Confidence < 1):
		return invalid("Confidence", o.Confidence, "use at least 0.5 and less than 1")
	case !(o.Threshold > 0 && o.Threshold < 100):
		return invalid("Threshold", o.Threshold, "use a share such as 0.1 for 10 %")
	case !(o.MaxErrorShare > 0 && o.MaxErrorShare <= 1):
		return invalid("MaxErrorShare", o.MaxErrorShare, "use a share above 0 and up to 1")
	case variants > 1 && l.Ops > 0 && l.Ops < int64(variants*o.Rounds):
		return invalid("Load.Ops", l.Ops, fmt.Sprintf("%d variants in %d rounds (the baseline counts twice) need at least %d", variants, o.Rounds, variants*o.Rounds))
	case l.Mode == Open:
		n, every := l.intents()
		if n < 1 {
			return invalid("Load.Duration", l.Duration, fmt.Sprintf("at %v operations per second not one starts in it, make it longer than %v", l.Rate, time.Duration(every)))
		}
		if n > 1<<50 {
			return invalid("Load.Duration", l.Duration, "too many operations at this rate, make it shorter")
		}
	}
	return nil
}

func (l *Load) resolve() error {
	switch l.Mode {
	case "", Closed:
		l.Mode = Closed
		if l.Rate != 0 {
			return invalid("Load.Rate", l.Rate, "a closed loop has no rate, set Mode: bench.Open to use one")
		}
		setDefault(&l.Workers, 1)
		l.Drain = 0
	case Open:
		if !(l.Rate > 0) || math.IsInf(l.Rate, 1) {
			return invalid("Load.Rate", l.Rate, "an open loop needs a positive number of operations per second")
		}
		setDefault(&l.Workers, 64)
		setDefault(&l.Drain, 10*time.Second)
	default:
		return invalid("Load.Mode", fmt.Sprintf("%q", l.Mode), "use bench.Closed or bench.Open")
	}
	if l.Workers > 100_000 {
		return invalid("Load.Workers", l.Workers, "use at most 100000")
	}
	if l.Duration == 0 && l.Ops == 0 {
		l.Duration = 10 * time.Second
	}
	if l.SkipWarmUp {
		if l.WarmUp > 0 {
			return invalid("Load.WarmUp", l.WarmUp, "leave it zero with SkipWarmUp")
		}
	} else if l.WarmUp == 0 {
		l.WarmUp = time.Second
		if l.Duration > 0 {
			l.WarmUp = min(l.WarmUp, l.Duration/10)
		}
	}
	return nil
}

// intents returns how many operations an open loop measures, and the nanoseconds between two of them.
func (l Load) intents() (n int64, every float64) {
	every = float64(time.Second) / l.Rate
	n = l.Ops
	if l.Duration > 0 {
		// The product of two rounded numbers may fall a hair short of the whole number that is meant.
		byTime := math.Floor(l.Duration.Seconds()*l.Rate + 1e-6)
		if n == 0 || byTime < float64(n) {
			n = int64(min(byTime, 1<<60))
		}
	}
	return n, every
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
