package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// The names of a gate's variants.
const (
	gateOld = "old"
	gateNew = "new"
)

// maxGateLimit is the least difference that a gate must be able to find: with more noise than that it is inconclusive.
const maxGateLimit = 1.25

// Gate compares two variants, which must be named "old" and "new", as two builds of the same thing: they are Remote, or it is
// a test. It measures a batch, and unless that one shows that nothing is worse, another with fresh processes. Results
// holds both.
//
// Latency is a regression if p50 or p99 are Slower in both batches: by more than Options.Threshold and twice the floor,
// which is the difference between the old build and itself. It passes if one batch shows for p50 that the whole interval is
// below that limit, the limit at most 1.25, and no batch calls it Slower. A counter is a regression if it is higher in both
// batches by more than the old build's own difference; counters do not depend on the machine. So is a new build whose
// operations fail while the old one's do not.
//
// A result that is partial or invalid for another reason makes the decision inconclusive. The error is Run's, of the
// batch that did not end well.
func Gate(ctx context.Context, s Scenario, o *Options) (*Decision, []*Result, error) {
	if len(s.Variants) != 2 || s.Variants[0].Name != gateOld || s.Variants[1].Name != gateNew {
		return nil, nil, errors.New("bench: a gate compares two variants, which are named old and new")
	}
	var results []*Result
	for {
		res, err := Run(ctx, s, o)
		if res != nil {
			results = append(results, res)
		}
		if err != nil {
			return nil, results, err
		}
		d := decide(results)
		if d.Outcome == Pass || len(results) == 2 {
			return d, results, nil
		}
	}
}

// decide is Gate's decision after one batch or two. What only one of one batch shows is not confirmed, and so unclear.
func decide(results []*Result) *Decision {
	d := &Decision{}
	var batches [][]Finding
	for i, r := range results {
		if reason := undecided(r); reason != "" {
			d.Reasons = append(d.Reasons, fmt.Sprintf("%s, batch %d: %s", r.Scenario, i+1, reason))
		}
		batches = append(batches, findings(r))
	}
	for _, last := range batches[len(batches)-1] {
		var all []Finding
		for _, b := range batches {
			if i := slices.IndexFunc(b, func(f Finding) bool { return f.Metric == last.Metric }); i >= 0 {
				all = append(all, b[i])
			}
		}
		d.Findings = append(d.Findings, confirm(all, len(results)))
	}
	if len(d.Reasons) > 0 && len(results) == 2 && undecided(results[1]) == "" {
		d.Reasons = nil // the second batch was in order
	}
	return d.settle()
}

// undecided is why a result says nothing of two builds. Failures of the new one alone say much.
func undecided(r *Result) string {
	failing := r.Variant(gateNew).Errors > 0 && r.Variant(gateOld).Errors == 0
	for _, m := range r.Marks {
		if m.Kind == Partial || !failing {
			return m.String()
		}
	}
	return ""
}

// findings judges one batch.
func findings(r *Result) []Finding {
	a, b, twin := r.Variant(gateOld), r.Variant(gateNew), r.Variant(twinName(gateOld))
	var all []Finding
	if a.Errors == 0 && b.Errors > 0 {
		all = append(all, Finding{Scenario: r.Scenario, Metric: "errors", New: float64(b.Errors), Ratio: math.Inf(1), Verdict: Slower, Gated: true})
	}
	for _, c := range r.Comparisons {
		if c.Variant != gateNew || c.Metric != "response_p50" && c.Metric != "response_p99" {
			continue
		}
		f := Finding{
			Scenario: r.Scenario, Metric: c.Metric, Ratio: c.Ratio, Low: c.Low, High: c.High, Floor: c.Floor, Gated: true,
			Old: float64(a.Response.P50), New: float64(b.Response.P50), Limit: 1 + max(r.Settings.Threshold, 2*c.Floor),
		}
		tail := c.Metric == "response_p99"
		if tail {
			f.Old, f.New = float64(a.Response.P99), float64(b.Response.P99)
		}
		switch {
		case c.Low > 1 && c.Ratio > f.Limit:
			f.Verdict = Slower
		case c.High < 1 && c.Ratio < 1/f.Limit:
			f.Verdict = Faster
		case c.High <= f.Limit && f.Limit <= maxGateLimit:
			f.Verdict = Same
		default:
			f.Verdict = Unclear
			f.Gated = !tail // tails are too noisy to ask that of them
		}
		all = append(all, f)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Counters)) {
		old, twin := a.Counters[name], twin.Counters[name]
		if now, both := b.Counters[name]; both {
			if f, gated := counterFinding(name, old, now, math.Abs(old-twin)); gated {
				f.Scenario = r.Scenario
				all = append(all, f)
			}
		}
	}
	return all
}

// confirm is the verdict on one metric over all batches; the figures are those of the batch that is worst.
func confirm(all []Finding, batches int) Finding {
	worst := slices.MaxFunc(all, func(a, b Finding) int { return cmp.Compare(a.Ratio, b.Ratio) })
	count := func(v Verdict) (n int) {
		for _, f := range all {
			if f.Verdict == v {
				n++
			}
		}
		return n
	}
	switch slower := count(Slower); {
	case slower == len(all) && slower == batches && batches > 1:
		worst.Verdict = Slower
	case slower > 0:
		worst.Verdict = Unclear
		worst.Gated = worst.Metric != "response_p99"
	case count(Faster) == len(all):
		worst.Verdict = Faster
	case count(Same)+count(Faster) > 0:
		worst.Verdict = Same
		worst.Gated = true
	}
	return worst
}
