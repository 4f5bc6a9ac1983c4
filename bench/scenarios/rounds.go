package scenarios

import (
	"math"
	"slices"
	"time"

	"github.com/shardkit/shardkit/bench"
)

// compareRounds sets every variant's stretches against the baseline's of the same round, the twin's first, as its noise
// judges the others.
//
// The interval is the range of the rounds: whatever the distribution, the true median lies outside it only if all rounds
// fell on one side of it, which has the chance of as many coins falling alike. That needs no resampling, which a handful
// of values does not bear.
func compareRounds(res *bench.Result, seen []stretches, metric string, of func(bench.Latency) time.Duration) []bench.Comparison {
	rounds := res.Settings.Rounds
	twin := len(seen) - 1
	var out []bench.Comparison
	floor := 0.0
	for _, v := range append([]int{twin}, between(1, twin)...) {
		var ratios []float64
		for n := range rounds {
			a, b := of(seen[0].rounds[n]), of(seen[v].rounds[n])
			if a > 0 && b > 0 {
				ratios = append(ratios, float64(b)/float64(a))
			}
		}
		if len(ratios) == 0 {
			continue
		}
		c := bench.Comparison{
			Variant: res.Variants[v].Name, Baseline: res.Variants[0].Name, Metric: metric, Rounds: len(ratios), Twin: v == twin,
			Ratio: median(ratios), Low: slices.Min(ratios), High: slices.Max(ratios),
		}
		if c.Twin {
			floor = max(c.High, 1/c.Low) - 1
		}
		c.Floor = floor
		c.Verdict = verdict(c, res.Settings.Threshold)
		out = append(out, c)
	}
	return out
}

// verdict judges as package bench does.
func verdict(c bench.Comparison, threshold float64) bench.Verdict {
	limit := 1 + max(threshold, 2*c.Floor)
	switch {
	case c.Low > 1 && c.Ratio > limit:
		return bench.Slower
	case c.High < 1 && c.Ratio < 1/limit:
		return bench.Faster
	case c.Low >= 1/(1+threshold) && c.High <= 1+threshold:
		return bench.Same
	}
	return bench.Unclear
}

// rangeConfidence is the chance that the range of n values holds the median of what they come from.
func rangeConfidence(n int) float64 { return 1 - math.Pow(2, 1-float64(n)) }

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func between(from, to int) []int {
	var s []int
	for i := from; i < to; i++ {
		s = append(s, i)
	}
	return s
}
