package scenarios

import (
	"fmt"
	"math"
	"time"

	"github.com/shardkit/shardkit/bench"
)

// Options tune a run. The zero value, or nil, is a short run: about 20 seconds a scenario.
type Options struct {
	// Long measures several times as long, for careful figures.
	Long bool

	// Duration is how long each part measures. Zero means some seconds, or in a long run some ten. Parts run over by a
	// few operations, and by what it takes to set up and count.
	Duration time.Duration

	// Rate, if not zero, asks at a fixed rate (open loop) where the scenario has Load.
	Rate float64

	// Workers is how many operations may be in progress where the scenario has Load. Zero means 1, or 64 with a Rate.
	Workers int

	// Rounds is how many times variants are compared, 5 to 1000. Zero means 9; 5 in a short reader-p99.
	Rounds int

	// Seed decides everything that is drawn. Zero draws one; the results tell which.
	Seed uint64

	// Progress is called several times a second, never concurrently. May be nil.
	Progress func(Progress)
}

// Check reports the first option that does not fit the parts.
func (o *Options) Check(parts []Part) error {
	bad := func(what string, got any, use string) error {
		return fmt.Errorf("bench: %s is %v: %s", what, got, use)
	}
	switch {
	case o.Duration < 0:
		return bad("the duration", o.Duration, "give a positive one such as 10s")
	case !(o.Rate >= 0) || math.IsInf(o.Rate, 1):
		return bad("the rate", o.Rate, "give operations per second, such as 1000")
	case o.Workers < 0:
		return bad("the number of workers", o.Workers, "give at least 1")
	case o.Rounds != 0 && (o.Rounds < 5 || o.Rounds > 1000):
		return bad("the number of rounds", o.Rounds, "give 5 to 1000, fewer have no interval")
	}
	for _, p := range parts {
		if !p.load && (o.Rate != 0 || o.Workers != 0) {
			return fmt.Errorf("bench: %s measures one writer at a time: leave out the rate and the workers", p.Name)
		}
		if p.metric == "" && (o.Duration != 0 || o.Rounds != 0) {
			return fmt.Errorf("bench: %s is computed: leave out the duration and the rounds", p.Name)
		}
	}
	return nil
}

// load is that of a part that measures for the given times by default.
func (o *Options) load(short, long time.Duration) bench.Load {
	l := bench.Load{Duration: o.Duration, Workers: o.Workers, Rate: o.Rate}
	if l.Rate > 0 {
		l.Mode = bench.Open
	}
	if l.Duration == 0 {
		l.Duration = short
		if o.Long {
			l.Duration = long
		}
	}
	return l
}
