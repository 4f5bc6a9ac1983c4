package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// pairReport is a report with a baseline, ours, and another way.
func pairReport(change func(*Result)) *Report {
	l := Latency{Count: 10_000, P50: 100 * time.Microsecond}
	r := &Result{Scenario: "get", Doc: "a key", Settings: Settings{Threshold: 0.1}}
	for _, name := range []string{"bare", "ours", "other", "bare'"} {
		r.Variants = append(r.Variants, VariantResult{Name: name, Twin: name == "bare'", Response: l, Counters: map[string]float64{RedisCommands: 5, AllocsPerOp: 100}})
		if name != "bare" {
			r.Comparisons = append(r.Comparisons, Comparison{Variant: name, Baseline: "bare", Metric: "response_p50", Ratio: 1.2, Low: 1.19, High: 1.21, Floor: 0.01, Twin: name == "bare'"})
		}
	}
	if change != nil {
		change(r)
	}
	return &Report{Schema: SchemaVersion, Results: []*Result{r}}
}

func TestCompareReports(t *testing.T) {
	slower := func(variant string) func(*Result) {
		return func(r *Result) {
			c := r.Comparison(variant, "response_p50")
			c.Ratio, c.Low, c.High = 1.8, 1.7, 1.9
		}
	}
	more := func(variant string) func(*Result) {
		return func(r *Result) { r.Variant(variant).Counters[RedisCommands] = 6 }
	}
	for _, tc := range []struct {
		name     string
		old, now *Report
		ours     string
		want     Outcome
		says     string
	}{
		{"the same", pairReport(nil), pairReport(nil), "ours", Pass, "not gated"},
		{"another machine", pairReport(nil), pairReport(func(r *Result) { r.Variants[1].Response.P50 *= 5 }), "ours", Pass, "500µs"},
		{"ours is slower", pairReport(nil), pairReport(slower("ours")), "ours", Regression, "get/ours ratio response_p50"},
		{"ours was slower", pairReport(slower("ours")), pairReport(nil), "ours", Pass, "faster"},
		{"the other is slower", pairReport(nil), pairReport(slower("other")), "ours", Pass, "slower, not gated"},
		{"the other is slower, and nobody is ours", pairReport(nil), pairReport(slower("other")), "", Regression, "get/other"},
		{"ours, the baseline, is slower", pairReport(slower("other")), pairReport(nil), "bare", Regression, "get/bare to other"},
		{"ours asks more", pairReport(nil), pairReport(more("ours")), "ours", Regression, "get/ours redis_commands"},
		{"the other asks more", pairReport(nil), pairReport(more("other")), "ours", Pass, "more, not gated"},
		{"partial", pairReport(nil), pairReport(func(r *Result) { r.Marks = []Mark{{Partial, "cut short"}} }), "ours", Inconclusive, "in the new report: PARTIAL: cut short"},
		{"something else", pairReport(func(r *Result) { r.Doc = "two keys" }), pairReport(nil), "ours", Inconclusive, "measures something else"},
		{"missing", pairReport(func(r *Result) { r.Scenario = "set" }), pairReport(nil), "ours", Inconclusive, "nothing in common"},
		{"noise", pairReport(nil), pairReport(func(r *Result) {
			c := r.Comparison("ours", "response_p50")
			c.Low, c.High, c.Floor = 0.9, 1.7, 0.4
		}), "ours", Inconclusive, "unclear"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := CompareReports(tc.old, tc.now, tc.ours)
			var b bytes.Buffer
			if err := d.WriteTable(&b); err != nil {
				t.Fatal(err)
			}
			if d.Outcome != tc.want || !strings.Contains(b.String(), tc.says) {
				t.Errorf("got %s, want %s and %q in\n%s", d.Outcome, tc.want, tc.says, b.String())
			}
		})
	}
}
