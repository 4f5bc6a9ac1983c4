package scenarios

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/bench"
)

func names(parts []Part) []string {
	var out []string
	for _, p := range parts {
		out = append(out, p.Name)
	}
	return out
}

func TestSelect(t *testing.T) {
	short := []string{"publish-20-strings", "publish-100-strings", "publish-200-strings", "publish-200-integers"}
	for _, tc := range []struct {
		name string
		long bool
		args []string
		want []string
	}{
		{"a scenario's short parts", false, []string{"publish"}, short},
		{"all of its parts", true, []string{"publish"}, append(slices.Clone(short), "publish-500-strings", "publish-2000-strings")},
		{"a long part by its name", false, []string{"publish-2000-strings"}, []string{"publish-2000-strings"}},
		{"a scenario of one part", false, []string{"delta"}, []string{"delta"}},
		{"in the order given, each once", false, []string{"delta", "publish-200-strings", "publish", "delta"},
			[]string{"delta", "publish-200-strings", "publish-20-strings", "publish-100-strings", "publish-200-integers"}},
		{"none", false, nil, nil},
	} {
		parts, err := Select(tc.long, tc.args...)
		if got := names(parts); err != nil || !slices.Equal(got, tc.want) {
			t.Errorf("%s: Select(%v, %q): got %q, %v; want %q", tc.name, tc.long, tc.args, got, err, tc.want)
		}
	}

	_, err := Select(false, "delta", "publsh")
	var unknown *UnknownError
	if !errors.As(err, &unknown) || unknown.Name != "publsh" || !slices.Contains(unknown.Known, "publish") {
		t.Errorf("got %v, want an UnknownError about publsh that lists publish", err)
	}
}

func TestScenariosAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if len(s.Parts) == 0 || s.Doc == "" || len(s.Doc) > 90 {
			t.Errorf("%s: %d parts, doc %q: want some, and a line of up to 90 bytes", s.Name, len(s.Parts), s.Doc)
		}
		if !slices.ContainsFunc(s.Parts, func(p Part) bool { return !p.Long }) {
			t.Errorf("%s: all parts are long, want one at least for a short run", s.Name)
		}
		for _, p := range s.Parts {
			if !strings.HasPrefix(p.Name, s.Name) || seen[p.Name] || p.Doc == "" || p.run == nil || p.takes == 0 {
				t.Errorf("%s: part %+v: want a name of its own that begins with the scenario's, and all fields", s.Name, p)
			}
			if s.Cluster && p.metric == "" {
				t.Errorf("%s: part %s compares nothing", s.Name, p.Name)
			}
			seen[p.Name] = true
		}
	}
}

func TestOptionsThatDoNotFit(t *testing.T) {
	publish, _ := Select(false, "publish")
	intersect, _ := Select(false, "intersect")
	coverage, _ := Select(false, "coverage")
	for _, tc := range []struct {
		parts []Part
		o     Options
		want  string // in the error; empty: none
	}{
		{publish, Options{}, ""},
		{publish, Options{Duration: time.Second, Rounds: 5, Long: true}, ""},
		{publish, Options{Duration: -time.Second}, "duration"},
		{publish, Options{Rounds: 4}, "5 to 1000"},
		{publish, Options{Rounds: 1001}, "5 to 1000"},
		{publish, Options{Rate: 100}, "one writer at a time"},
		{publish, Options{Workers: 2}, "one writer at a time"},
		{intersect, Options{Rate: 100, Workers: 2}, ""},
		{intersect, Options{Rate: -1}, "rate"},
		{intersect, Options{Rate: math.NaN()}, "rate"},
		{intersect, Options{Rate: math.Inf(1)}, "rate"},
		{intersect, Options{Workers: -1}, "workers"},
		{coverage, Options{Seed: 1, Long: true}, ""},
		{coverage, Options{Duration: time.Second}, "computed"},
	} {
		err := tc.o.Check(tc.parts)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v with %+v: got %v, want %q", names(tc.parts), tc.o, err, tc.want)
		}
		if err == nil {
			continue
		}
		if _, runErr := Run(t.Context(), tc.parts, nil, &tc.o); runErr == nil || runErr.Error() != err.Error() {
			t.Errorf("%v with %+v: Run says %v, Check %v", names(tc.parts), tc.o, runErr, err)
		}
	}
}

// Lookups need no servers, and none allocates.
func TestRing(t *testing.T) {
	parts, err := Select(false, "ring")
	if err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		parts[i].count = 4
	}
	results, err := Run(t.Context(), parts, nil, &Options{Duration: 100 * time.Millisecond, Rounds: 5, Seed: 1})
	if err != nil || len(results) != 2 || len(results[0].Variants) != 5 || len(results[1].Variants) != 6 { // each with the baseline's twin
		t.Fatalf("got %+v, %v, want two parts", results, err)
	}
	for _, r := range results {
		for _, v := range r.Variants {
			if v.Errors != 0 || v.Response.Count == 0 {
				t.Errorf("%s, %s: %d operations, %d errors", r.Scenario, v.Name, v.Response.Count, v.Errors)
			}
			if got := v.Counters[bench.AllocsPerOp]; got > lookups/10 { // the race detector's own are fewer
				t.Errorf("%s, %s: %v allocations in %d lookups", r.Scenario, v.Name, got, lookups)
			}
		}
	}
}

func TestClusterIsNeeded(t *testing.T) {
	parts, _ := Select(false, "delta")
	if _, err := Run(t.Context(), parts, nil, nil); err == nil || !strings.Contains(err.Error(), "needs a cluster") {
		t.Errorf("got %v, want an error that asks for a cluster", err)
	}
}
