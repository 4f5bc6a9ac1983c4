package soak

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Options of a Run. The zero value works.
type Options struct {
	// Seed gives the schedule, and the draws of each process.
	Seed uint64

	// Duration is how long load and faults last. 0 means a minute; then all comes
	// to rest, which takes some more.
	Duration time.Duration

	// Shards and Processes are how many there are. 0 means 3 and 4. Besides the shards
	// there is a spare one, for Join and Leave.
	Shards, Processes int

	// Subject is what the processes use: Tiercache, which is also what "" means, or
	// RingCache.
	Subject string

	// Client is what Tiercache reaches shards by: "goredis", "rueidis", or "mixed",
	// which is also what "" means: each for every other process.
	Client string

	// Faults are what may happen. nil means FaultKinds, a list of none nothing.
	Faults []FaultKind

	// Schedule is carried out in place of the one that Seed gives.
	Schedule []Step

	// Heartbeat is that of the caches, and the measure of all times: calls, bounds and
	// faults last so and so many heartbeats. 0 means the default of package
	// tiercache, 1 s.
	Heartbeat time.Duration

	// Loader is the longest that the source of truth takes; half of the time it takes
	// nothing, and mostly much less. 0 means a quarter of Heartbeat.
	Loader time.Duration

	// Margin is by how much an operation may outlast its deadline: give more where the
	// machine is busy with other things. 0 means half of Heartbeat, and 500 ms at least.
	Margin time.Duration

	// Rate is how many operations a second each process begins. 0 means 300.
	Rate float64

	// Server is the binary of a Redis server, as in package harness.
	Server string

	// Worker is the program that is run as a process. "" means this one.
	Worker string

	// Progress is told every second how far the run is.
	Progress func(Progress)
}

// Progress is how far a run is.
type Progress struct {
	Elapsed, Duration time.Duration // of load and faults
	Ops, Failed       int
	Faults            int
	Now               []Step // under way
	Settling          bool
}

const (
	Tiercache = "tiercache"
	RingCache = "go-redis ring" // go-redis's Ring, with a local cache before it
)

// ErrOptions is the error of options that contradict themselves.
var ErrOptions = errors.New("soak: options")

func (o *Options) withDefaults() (*Options, error) {
	opts := Options{}
	if o != nil {
		opts = *o
	}
	set(&opts.Duration, time.Minute)
	set(&opts.Shards, 3)
	set(&opts.Processes, 4)
	set(&opts.Subject, Tiercache)
	set(&opts.Client, "mixed")
	set(&opts.Heartbeat, time.Second)
	set(&opts.Loader, opts.Heartbeat/4)
	set(&opts.Margin, max(opts.Heartbeat/2, 500*time.Millisecond))
	set(&opts.Rate, 300)
	if opts.Faults == nil {
		opts.Faults = FaultKinds
	}
	switch {
	case opts.Duration < 0 || opts.Rate < 0 || opts.Loader < 0 || opts.Margin < 0:
		return nil, fmt.Errorf("%w: Duration, Loader, Margin and Rate must be above 0", ErrOptions)
	case opts.Shards < 1 || opts.Shards > 100:
		return nil, fmt.Errorf("%w: Shards is %d, want 1 to 100", ErrOptions, opts.Shards)
	case opts.Processes < 1 || opts.Processes > maxProcesses:
		return nil, fmt.Errorf("%w: Processes is %d, want 1 to %d", ErrOptions, opts.Processes, maxProcesses)
	case opts.Heartbeat < 50*time.Millisecond:
		return nil, fmt.Errorf("%w: Heartbeat is %v, want 50ms at least", ErrOptions, opts.Heartbeat)
	case !slices.Contains([]string{Tiercache, RingCache}, opts.Subject):
		return nil, fmt.Errorf("%w: Subject is %q, want %q or %q", ErrOptions, opts.Subject, Tiercache, RingCache)
	case !slices.Contains([]string{"goredis", "rueidis", "mixed"}, opts.Client):
		return nil, fmt.Errorf("%w: Client is %q, want goredis, rueidis or mixed", ErrOptions, opts.Client)
	}
	for _, k := range opts.Faults {
		if !slices.Contains(FaultKinds, k) {
			return nil, fmt.Errorf("%w: there is no fault %q; there are %v", ErrOptions, k, FaultKinds)
		}
	}
	for _, s := range opts.Schedule {
		process := s.Kind == KillProc || s.Kind == StopProc
		switch {
		case s.Shard > opts.Shards || s.Kind.members() && s.Shard != opts.Shards || s.Process >= opts.Processes,
			process && s.Process < 0, !process && s.Shard < 0, !s.Kind.network() && !process && s.Process >= 0:
			return nil, fmt.Errorf("%w: Schedule: %v: it has no such shard or process", ErrOptions, s)
		}
	}
	return &opts, nil
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// bounds are those that package tiercache states, in heartbeats of its defaults.
func (o *Options) bounds() Bounds {
	return Bounds{
		Lost: 2 * o.Heartbeat, Cut: failoverBeats * o.Heartbeat,
		Detect: 17 * o.Heartbeat / 10,
		Margin: o.Margin,
	}
}

// failoverBeats is the life of what is written while a shard is out, which the
// default is in heartbeats.
const failoverBeats = 10

// localBytes bounds L1: of four processes one has none, and one next to none, so that
// they read from shards what is hot.
func localBytes(process int) int64 {
	switch process % 4 {
	case 2:
		return 4 << 10
	case 3:
		return -1
	}
	return 0 // the default
}

const (
	// hotReads within 5 s make a key hot: less than by default, since processes do little.
	hotReads = 10

	maxProcesses = 64

	orderedKeys = 160
	racingKeys  = 8
)
