package bench

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// CompareReports says whether a newer report is worse than an older one, which may be of another machine: counters per
// operation and ratios between the variants of a run are gated, by their intervals and noise. Latencies are shown alone.
//
// Ours names the variant that may not become worse, relative to the others; where a scenario has none of that name, and
// where it is empty, it is every variant but the baseline.
//
// It is inconclusive about scenarios that are partial or invalid, measure something else by their Doc, or are missing from
// one report.
func CompareReports(old, new *Report, ours string) *Decision {
	d := &Decision{}
	byName := func(r *Report, name string) *Result {
		i := slices.IndexFunc(r.Results, func(r *Result) bool { return r.Scenario == name })
		if i < 0 {
			return nil
		}
		return r.Results[i]
	}
	reason := func(scenario, format string, args ...any) {
		d.Reasons = append(d.Reasons, scenario+": "+fmt.Sprintf(format, args...))
	}
	for _, b := range new.Results {
		a := byName(old, b.Scenario)
		switch {
		case a == nil:
			reason(b.Scenario, "only in the new report")
			continue
		case a.Doc != b.Doc:
			reason(b.Scenario, "measures something else: %q before, %q now", a.Doc, b.Doc)
			continue
		}
		for _, side := range []struct {
			name string
			*Result
		}{{"old", a}, {"new", b}} {
			for _, m := range side.Marks {
				reason(b.Scenario, "in the %s report: %s", side.name, m)
			}
		}
		d.Findings = append(d.Findings, compareResults(a, b, ours)...)
	}
	for _, a := range old.Results {
		if byName(new, a.Scenario) == nil {
			reason(a.Scenario, "only in the old report")
		}
	}
	if len(d.Findings) == 0 {
		d.Reasons = append(d.Reasons, "the reports have nothing in common")
	}
	return d.settle()
}

func compareResults(a, b *Result, ours string) []Finding {
	var all []Finding
	if b.Variant(ours) == nil {
		ours = ""
	}
	for _, now := range b.Variants {
		before := a.Variant(now.Name)
		if before == nil || now.Twin {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(now.Counters)) {
			old, has := before.Counters[name]
			if !has {
				continue
			}
			f, known := counterFinding(name, old, now.Counters[name], max(counterNoise(a, name), counterNoise(b, name)))
			if known {
				f.Scenario, f.Variant, f.Gated = b.Scenario, now.Name, ours == "" || ours == now.Name
				all = append(all, f)
			}
		}
		if before.Response.Count > 0 && now.Response.Count > 0 {
			f := Finding{Scenario: b.Scenario, Variant: now.Name, Metric: "response_p50", Old: float64(before.Response.P50), New: float64(now.Response.P50)}
			f.Ratio = f.New / f.Old
			all = append(all, f)
		}
	}
	return append(all, compareRatios(a, b, ours)...)
}

// counterNoise is how much a counter differs between the baseline and its twin.
func counterNoise(r *Result, name string) float64 {
	for _, v := range r.Variants {
		if v.Twin {
			return math.Abs(v.Counters[name] - r.Variants[0].Counters[name])
		}
	}
	return 0
}

func compareRatios(a, b *Result, ours string) []Finding {
	var all []Finding
	for _, now := range b.Comparisons {
		before := a.Comparison(now.Variant, now.Metric)
		if before == nil || now.Twin || before.Baseline != now.Baseline || strings.HasSuffix(now.Metric, "_mean") {
			continue
		}
		old, fresh, variant := *before, now, now.Variant
		if ours == now.Baseline {
			old, fresh, variant = old.inverse(), fresh.inverse(), now.Baseline+" to "+now.Variant
		}
		f := Finding{
			Scenario: b.Scenario, Variant: variant, Metric: "ratio " + now.Metric,
			Old: old.Ratio, New: fresh.Ratio, Ratio: fresh.Ratio / old.Ratio, Low: fresh.Low / old.High, High: fresh.High / old.Low,
			Floor: max(old.Floor, fresh.Floor), Gated: ours == "" || ours == now.Variant || ours == now.Baseline, Verdict: Unclear,
		}
		f.Limit = 1 + max(b.Settings.Threshold, 2*f.Floor)
		switch {
		case f.Low > 1 && f.Ratio > f.Limit:
			f.Verdict = Slower
		case f.High < 1 && f.Ratio < 1/f.Limit:
			f.Verdict = Faster
		case f.High <= f.Limit && f.Limit <= maxGateLimit:
			f.Verdict = Same
		case strings.HasSuffix(f.Metric, "_p99"):
			f.Gated = false // tails are too noisy to ask for more
		}
		all = append(all, f)
	}
	return all
}

// inverse is the baseline's ratio to the variant.
func (c Comparison) inverse() Comparison {
	c.Ratio, c.Low, c.High = 1/c.Ratio, 1/c.High, 1/c.Low
	return c
}
