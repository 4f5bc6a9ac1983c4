package scenarios

import (
	"time"

	"github.com/shardkit/shardkit/bench"
)

// Progress is a glance at a run.
type Progress struct {
	Part       string // under way
	Number, Of int    // of that part, from 1, and of all
	Doing      string // "shardkit" under load, or a phase such as "set-up"

	// Done is the finished share of the whole run, 0 to 1; it never goes back. ETA is an estimate of the time that is
	// left, 0 when unknown.
	Done float64
	ETA  time.Duration
}

// clock turns the progress of parts into that of the run: by what each is expected to take, until it is known.
type clock struct {
	parts  []Part
	report func(Progress)
	start  time.Time
	whole  time.Duration
	done   float64
}

func newClock(parts []Part, report func(Progress)) *clock {
	c := &clock{parts: parts, report: report, start: time.Now()}
	for _, p := range parts {
		c.whole += p.takes
	}
	return c
}

// measuring is the share of a part's time that bench reports progress of; setting up and counting take the rest.
const measuring = 0.7

func (c *clock) part(i int) func(bench.Progress) {
	if c.report == nil {
		return nil
	}
	var before time.Duration
	for _, p := range c.parts[:i] {
		before += p.takes
	}
	return func(p bench.Progress) {
		share := 0.1 + measuring*p.Done
		switch p.Phase {
		case bench.PhaseSetUp:
			share = 0
		case bench.PhaseDone:
			share = 1
		}
		c.done = max(c.done, (float64(before)+share*float64(c.parts[i].takes))/float64(max(c.whole, 1)))
		out := Progress{Part: c.parts[i].Name, Number: i + 1, Of: len(c.parts), Doing: p.Variant, Done: c.done}
		if p.Phase != bench.PhaseMeasure || p.Variant == "" {
			out.Doing = string(p.Phase)
		}
		if elapsed := time.Since(c.start); c.done > 0.02 {
			out.ETA = time.Duration(float64(elapsed) * (1 - c.done) / c.done)
		}
		c.report(out)
	}
}
