package bench

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// batch is a gate's batch with an old build of 100 µs and the given changes.
func batch(change func(*Result)) *Result {
	l := Latency{Count: 10_000, P50: 100 * time.Microsecond, P99: 300 * time.Microsecond}
	counters := map[string]float64{RedisCommands: 5, RedisReads: 1, RedisBytesIn: 186, RedisBytesOut: 491, AllocsPerOp: 102, BytesPerOp: 3761}
	r := &Result{Scenario: "get", Doc: "a key", Settings: Settings{Threshold: 0.1}}
	for _, name := range []string{"old", "new", "old'"} {
		r.Variants = append(r.Variants, VariantResult{Name: name, Twin: name == "old'", Response: l, Counters: maps.Clone(counters)})
		if name != "old" {
			for _, metric := range []string{"response_p50", "response_p99", "response_mean"} {
				r.Comparisons = append(r.Comparisons, Comparison{
					Variant: name, Baseline: "old", Metric: metric, Ratio: 1, Low: 0.98, High: 1.02, Floor: 0.02, Verdict: Same, Twin: name == "old'",
				})
			}
		}
	}
	if change != nil {
		change(r)
	}
	return r
}

func ratio(metric string, low, mid, high, floor float64) func(*Result) {
	return func(r *Result) {
		c := r.Comparison("new", metric)
		c.Low, c.Ratio, c.High, c.Floor = low, mid, high, floor
	}
}

func counter(name string, n float64) func(*Result) {
	return func(r *Result) { r.Variant("new").Counters[name] = n }
}

func TestGateDecides(t *testing.T) {
	partial := func(r *Result) { r.Marks = []Mark{{Partial, "a server went away"}} }
	failing := func(r *Result) {
		r.Variant("new").Errors = 500
		r.Marks = []Mark{{Invalid, "500 of 10500 operations failed"}}
	}
	allFail := func(r *Result) {
		failing(r)
		r.Variant("old").Errors = 500
	}
	slow := ratio("response_p50", 1.4, 1.5, 1.6, 0.02)
	for _, tc := range []struct {
		name    string
		batches []func(*Result)
		want    Outcome
		says    string
	}{
		{"nothing changed", []func(*Result){nil}, Pass, ""},
		{"slower once, not measured again", []func(*Result){slow}, Inconclusive, ""},
		{"slower twice", []func(*Result){slow, slow}, Regression, "response_p50"},
		{"slower, not confirmed", []func(*Result){slow, nil}, Inconclusive, ""},
		{"slower only than noise", []func(*Result){ratio("response_p50", 1.02, 1.08, 1.11, 0.06)}, Pass, ""},
		{"slower by less than the threshold", []func(*Result){ratio("response_p50", 1.05, 1.08, 1.09, 0.01)}, Pass, ""},
		{"too noisy to tell", []func(*Result){ratio("response_p50", 0.8, 1.1, 1.3, 0.3), ratio("response_p50", 0.8, 1.1, 1.3, 0.3)}, Inconclusive, ""},
		{"noise that would hide it is no pass", []func(*Result){ratio("response_p50", 0.9, 1.0, 1.1, 0.4)}, Inconclusive, ""},
		{"unclear, then clear", []func(*Result){ratio("response_p50", 0.8, 1.1, 1.3, 0.02), nil}, Pass, ""},
		{"tail slower twice", []func(*Result){ratio("response_p99", 1.4, 1.5, 1.6, 0.02), ratio("response_p99", 1.4, 1.5, 1.6, 0.02)}, Regression, "response_p99"},
		{"tail slower once", []func(*Result){ratio("response_p99", 1.4, 1.5, 1.6, 0.02), nil}, Pass, ""},
		{"tail too noisy", []func(*Result){ratio("response_p99", 0.5, 1.1, 3, 0.8)}, Pass, ""},
		{"faster", []func(*Result){ratio("response_p50", 0.5, 0.6, 0.7, 0.02)}, Pass, "faster"},
		{"a command more", []func(*Result){counter(RedisCommands, 6), counter(RedisCommands, 6)}, Regression, RedisCommands},
		{"a round trip more", []func(*Result){counter(RedisReads, 2), counter(RedisReads, 2)}, Regression, RedisReads},
		{"an allocation more", []func(*Result){counter(AllocsPerOp, 105), counter(AllocsPerOp, 105)}, Regression, AllocsPerOp},
		{"bytes more", []func(*Result){counter(RedisBytesIn, 250), counter(RedisBytesIn, 250)}, Regression, RedisBytesIn},
		{"a command more, once", []func(*Result){counter(RedisCommands, 6), nil}, Inconclusive, ""},
		{"a trifle more", []func(*Result){counter(AllocsPerOp, 102.3)}, Pass, ""},
		{"a command less", []func(*Result){counter(RedisCommands, 4)}, Pass, "less"},
		{"another counter more", []func(*Result){func(r *Result) {
			for i := range r.Variants {
				r.Variants[i].Counters["mine"] = float64(i)
			}
		}}, Pass, ""},
		{"the old one differs from itself", []func(*Result){func(r *Result) {
			r.Variant("new").Counters[RedisCommands] = 6
			r.Variant("old'").Counters[RedisCommands] = 5.6
		}}, Pass, ""},
		{"partial twice", []func(*Result){partial, partial}, Inconclusive, "a server went away"},
		{"partial, then whole", []func(*Result){partial, nil}, Pass, ""},
		{"the new one fails", []func(*Result){failing, failing}, Regression, "errors"},
		{"both fail", []func(*Result){allFail, allFail}, Inconclusive, "operations failed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var results []*Result
			for _, change := range tc.batches {
				results = append(results, batch(change))
			}
			d := decide(results)
			var text, markdown bytes.Buffer
			if err := errors.Join(d.WriteTable(&text), d.WriteMarkdown(&markdown)); err != nil {
				t.Fatal(err)
			}
			if d.Outcome != tc.want || !strings.Contains(text.String(), tc.says) {
				t.Errorf("got %s, want %s and %q in\n%s", d.Outcome, tc.want, tc.says, text.String())
			}
			if !strings.Contains(text.String(), "2.0 %") && tc.batches[0] == nil {
				t.Errorf("the noise floor is not printed:\n%s", text.String())
			}
			if !strings.Contains(markdown.String(), "**"+string(tc.want)) {
				t.Errorf("the Markdown does not say %s:\n%s", tc.want, markdown.String())
			}
		})
	}
}

// Two builds in two processes: what is exact is found, whatever the machine is busy with.
func TestGate(t *testing.T) {
	o := &Options{Load: Load{Duration: 300 * time.Millisecond}, Rounds: 5}
	d, results, err := Gate(t.Context(), pair("plain", "allocates"), o)
	if err != nil || d.Outcome != Regression || len(results) != 2 {
		t.Fatalf("an allocation more: got %+v, %d batches, %v", d, len(results), err)
	}
	if i := slices.IndexFunc(d.Findings, func(f Finding) bool { return f.Metric == AllocsPerOp }); d.Findings[i].Verdict != Slower {
		t.Errorf("got %+v", d.Findings[i])
	}

	d, results, err = Gate(t.Context(), pair("plain", "crash"), o)
	if d != nil || !errors.Is(err, ErrInterrupted) || len(results) == 0 {
		t.Errorf("a crash: got %+v, %d batches, %v", d, len(results), err)
	}
	if _, _, err = Gate(t.Context(), Scenario{Name: "a"}, nil); err == nil || !strings.Contains(err.Error(), "old and new") {
		t.Errorf("no variants: got %v", err)
	}
}

func TestDecisionsAdd(t *testing.T) {
	all := &Decision{}
	for _, step := range []struct{ add, want Outcome }{{Pass, Pass}, {Inconclusive, Inconclusive}, {Pass, Inconclusive}, {Regression, Regression}, {Inconclusive, Regression}} {
		if all.Add(&Decision{Outcome: step.add}); all.Outcome != step.want {
			t.Errorf("and %s: got %s, want %s", step.add, all.Outcome, step.want)
		}
	}
}
