package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Verdict says what a comparison found.
type Verdict string

const (
	// Slower and Faster: the whole interval lies on one side of 1, and the ratio is beyond both the threshold and
	// twice the floor.
	Slower Verdict = "slower"
	Faster Verdict = "faster"

	// Same: the whole interval lies within the threshold.
	Same Verdict = "same"

	// Unclear: anything else. Measure longer, or on a quieter machine.
	Unclear Verdict = "unclear"
)

// Comparison is one figure of a variant divided by the baseline's.
type Comparison struct {
	Variant  string `json:"variant"`
	Baseline string `json:"baseline"`

	// Metric is "response" or "service", then "_p50", "_p99" or "_mean". Service is there in open loop only, where it
	// is the better one to compare: response time holds the queue that both variants stood in. p99 is there if every
	// round has at least 200 operations of both.
	Metric string `json:"metric"`

	// Ratio is the median over rounds of variant divided by baseline: 2 is twice as slow. Low and High are the ends of
	// its bootstrap interval, at the confidence in Result.Settings, widened by the histograms' resolution (0.1 %).
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`

	// Floor is what noise alone did in this run: the far end of the interval of baseline against itself, as the
	// distance from 1. 0.03 is 3 %. In the comparison with the twin it is that one's own.
	Floor float64 `json:"floor"`

	// Rounds that had operations of both.
	Rounds int `json:"rounds"`

	Verdict Verdict `json:"verdict"`

	// Twin marks the comparison of the baseline with itself.
	Twin bool `json:"twin,omitempty"`
}

// String words the comparison: "b is 1.52 times a's response_p50 (1.48 to 1.56, noise floor 2.1 %): slower".
func (c Comparison) String() string {
	return fmt.Sprintf("%s is %.2f times %s's %s (%.2f to %.2f, noise floor %.1f %%): %s",
		c.Variant, c.Ratio, c.Baseline, c.Metric, c.Low, c.High, 100*c.Floor, c.Verdict)
}

func (c *Comparison) judge(threshold float64) {
	limit := 1 + max(threshold, 2*c.Floor)
	switch {
	case c.Low > 1 && c.Ratio > limit:
		c.Verdict = Slower
	case c.High < 1 && c.Ratio < 1/limit:
		c.Verdict = Faster
	case c.Low >= 1/(1+threshold) && c.High <= 1+threshold:
		c.Verdict = Same
	default:
		c.Verdict = Unclear
	}
}

// metric is a figure of one variant in one round; 0 when there is none.
type metric struct {
	name  string
	min   int64   // operations it takes
	grain float64 // how far the logarithm may be off because of the histogram's buckets
	of    func(timing) float64
}

func metrics(mode Mode) []metric {
	which := []struct {
		name string
		pick func(timing) *histogram
	}{{"response", func(t timing) *histogram { return t.response }}}
	if mode == Open {
		which = append(which, which[0])
		which[0].name, which[0].pick = "service", func(t timing) *histogram { return t.service }
	}
	// Without this, two equal variants whose median sits at the edge of a bucket would differ for certain.
	const bucket = 1.0 / 1024
	var all []metric
	for _, w := range which {
		all = append(all,
			metric{w.name + "_p50", 1, bucket, func(t timing) float64 { return w.pick(t).quantile(50) }},
			metric{w.name + "_p99", 200, bucket, func(t timing) float64 { return w.pick(t).quantile(99) }},
			metric{w.name + "_mean", 1, 0, func(t timing) float64 { return w.pick(t).mean() }},
		)
	}
	return all
}

// compare sets every variant against the first, the twin (the last one) first, as its noise judges the others.
func compare(names []string, rounds [][]timing, o *Options) []Comparison {
	if len(names) < 2 {
		return nil
	}
	twin := len(names) - 1
	var all []Comparison
	floors := map[string]float64{}
	for _, v := range append([]int{twin}, seq(1, twin)...) {
		for i, m := range metrics(o.Load.Mode) {
			logs := pairedLogs(rounds, v, m)
			if len(logs) < 3 {
				continue
			}
			// A stream per comparison: a figure does not change because another one was left out.
			rng := rand.New(rand.NewPCG(o.Seed, uint64(v)<<16|uint64(i)))
			mid, low, high := bootstrap(logs, o.Confidence, rng)
			low, high = low-m.grain, high+m.grain
			c := Comparison{
				Variant: names[v], Baseline: names[0], Metric: m.name, Rounds: len(logs), Twin: v == twin,
				Ratio: math.Exp(mid), Low: math.Exp(low), High: math.Exp(high),
			}
			if c.Twin {
				floors[m.name] = math.Expm1(max(math.Abs(low), math.Abs(high)))
			}
			c.Floor = floors[m.name]
			c.judge(o.Threshold)
			all = append(all, c)
		}
	}
	return all
}

func seq(from, to int) []int {
	var s []int
	for i := from; i < to; i++ {
		s = append(s, i)
	}
	return s
}

// pairedLogs returns log(variant/baseline) for each round. Logs make twice and half as slow equally far from 1.
func pairedLogs(rounds [][]timing, v int, m metric) []float64 {
	var logs []float64
	for _, byVariant := range rounds {
		a, b := byVariant[0], byVariant[v]
		few := min(a.response.n(), b.response.n()) < m.min
		if few && m.min > 1 {
			return nil
		}
		x, y := m.of(a), m.of(b)
		if few || x <= 0 || y <= 0 {
			continue
		}
		logs = append(logs, math.Log(y/x))
	}
	return logs
}

// bootstrap returns the median of x and the interval of medians of resamples of x.
//
// The plain percentile interval is too narrow for few values: of 9 it misses the truth 4 times of 100 where it says 1. So
// the percentiles are moved out by as much as Student's distribution is wider than the normal one, the "expanded
// percentile interval" of T. Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, section 5.3.
func bootstrap(x []float64, confidence float64, rng *rand.Rand) (mid, low, high float64) {
	const resamples = 4000
	medians := make([]float64, resamples)
	draw := make([]float64, len(x))
	for i := range medians {
		for j := range draw {
			draw[j] = x[rng.IntN(len(x))]
		}
		slices.Sort(draw)
		medians[i] = middle(draw)
	}
	slices.Sort(medians)
	n := float64(len(x))
	q := math.Sqrt(n/(n-1)) * studentQuantile((1+confidence)/2, n-1)
	tail := int(math.Erfc(q/math.Sqrt2) / 2 * resamples)
	return median(x), medians[tail], medians[resamples-1-tail]
}

// studentQuantile approximates the quantile of Student's t (Abramowitz and Stegun 26.7.5), within 2 % from 4 degrees of
// freedom up to the 99.5th percentile: resampling a handful of values tells no finer.
func studentQuantile(p, degrees float64) float64 {
	z := math.Sqrt2 * math.Erfinv(2*p-1)
	z2 := z * z
	return z * (1 + (z2+1)/(4*degrees) + ((5*z2+16)*z2+3)/(96*degrees*degrees) +
		(((3*z2+19)*z2+17)*z2-15)/(384*degrees*degrees*degrees))
}

// median of x, which holds at least one value and keeps its order.
func median(x []float64) float64 { return middle(slices.Sorted(slices.Values(x))) }

func middle(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
