package bench

import "math"

// tolerance is by how much a counter may rise by itself: a share of it, and so much at any rate.
type tolerance struct{ share, least float64 }

// Gated counters. All but reads are exact on every machine, but for what happens in the background once in a while. Reads
// depend on how the network cuts large requests.
var tolerances = map[string]tolerance{
	RedisCommands: {0.02, 0.1},
	RedisReads:    {0.1, 0.3},
	RedisBytesIn:  {0.02, 16},
	RedisBytesOut: {0.02, 16},
	AllocsPerOp:   {0.02, 0.5},
	BytesPerOp:    {0.05, 64},
}

// counterFinding judges a counter, given how much it differs between two measurements of the same. Counters of other
// names are not gated.
func counterFinding(name string, old, now, noise float64) (f Finding, gated bool) {
	t, gated := tolerances[name]
	if !gated {
		return Finding{}, false
	}
	slack := max(t.share*old, t.least, 2*noise)
	f = Finding{Metric: name, Old: old, New: now, Ratio: now / old, Verdict: Same, Gated: true}
	if old == 0 {
		f.Ratio = 1
		if now > slack {
			f.Ratio = math.Inf(1)
		}
	} else {
		f.Limit, f.Floor = (old+slack)/old, noise/old
	}
	switch {
	case now > old+slack:
		f.Verdict = Slower
	case now < old-slack:
		f.Verdict = Faster
	}
	return f, true
}
