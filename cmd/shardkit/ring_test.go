package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/ring"
)

func ringJSON(t *testing.T, args ...string) ringReport {
	t.Helper()
	got := shardkit(t, t.Context(), "", append([]string{"ring", "--json"}, args...)...)
	var r ringReport
	if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.code != exitOK || got.err != "" {
		t.Fatalf("got %+v, %v, want one JSON object", got, err)
	}
	return r
}

func TestRingJSON(t *testing.T) {
	one, two := ring.Nodes("b", "a"), []ring.Node{{Name: "a", Weight: 1}, {Name: "c", Weight: 2.5}}
	before, err := ring.New(one, nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := ring.New(two, nil)
	if err != nil {
		t.Fatal(err)
	}
	change, err := ring.Diff(before, after)
	if err != nil {
		t.Fatal(err)
	}
	was, is := before.Shares(), after.Shares()
	want := ringReport{
		Nodes: []ringShare{
			{"b", &ringOwn{1, was[1], 0.5}, nil},
			{"a", &ringOwn{1, was[0], 0.5}, &ringOwn{1, is[0], 1 / 3.5}},
			{"c", nil, &ringOwn{2.5, is[1], 2.5 / 3.5}},
		},
		Remap: &ringRemap{change.Moved, 2.5 / 3.5},
	}
	got := ringJSON(t, "--nodes", "b, a", "--add", "c=2.5", "--remove", "b")
	if g, w := toJSON(t, got), toJSON(t, want); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}

	alone := ringJSON(t, "--nodes", "b,a")
	if alone.Remap != nil || len(alone.Nodes) != 2 || alone.Nodes[0].After != nil || alone.Nodes[0].Before.Share != was[1] {
		t.Errorf("nothing comes or goes: got %s", toJSON(t, alone))
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// With --keys the command counts what a program would that places the same keys.
func TestRingKeys(t *testing.T) {
	const keys = 1000
	before, err := ring.New(ring.Nodes("a", "b"), nil)
	if err != nil {
		t.Fatal(err)
	}
	after, err := before.With(ring.Node{Name: "c", Weight: 1})
	if err != nil {
		t.Fatal(err)
	}
	counts, moved := map[string]int{}, 0
	for i := range keys {
		key := fmt.Sprintf("key-%d", i+1)
		counts[after.Locate(key)]++
		if before.Locate(key) != after.Locate(key) {
			moved++
		}
	}
	got := ringJSON(t, "--nodes", "a,b", "--add", "c", "--keys", strconv.Itoa(keys))
	if got.Keys != keys || math.Round(got.Remap.Moved*keys) != float64(moved) || moved == 0 {
		t.Errorf("got %s, want %d keys moved", toJSON(t, got), moved)
	}
	for _, n := range got.Nodes {
		if math.Round(n.After.Share*keys) != float64(counts[n.Name]) {
			t.Errorf("got %s, want %v keys", toJSON(t, got), counts)
		}
	}
}

// A change of weight is a node that goes and comes again: one line, and only its keys move.
func TestRingWeight(t *testing.T) {
	got := ringJSON(t, "--nodes", "a,b,c", "--remove", "a", "--add", "a=2")
	if len(got.Nodes) != 3 || got.Nodes[0].After.Weight != 2 || math.Abs(got.Remap.Optimum-(0.5-1.0/3)) > 1e-9 {
		t.Errorf("got %s", toJSON(t, got))
	}
	if gained := got.Nodes[0].After.Share - got.Nodes[0].Before.Share; math.Abs(got.Remap.Moved-gained) > 1e-9 {
		t.Errorf("moved %v, want what a gained, %v", got.Remap.Moved, gained)
	}
}

func TestRingTable(t *testing.T) {
	args := []string{"--nodes", "a,a much longer name=2,c", "--add", "new", "--remove", "c"}
	report := ringJSON(t, args...)
	got := shardkit(t, t.Context(), "", append([]string{"ring"}, args...)...)
	lines := strings.Split(got.out, "\n")
	if got.code != exitOK || got.err != "" || len(lines) != 8 {
		t.Fatalf("got %+v, want a header, four nodes, and the remap", got)
	}
	if want := fmt.Sprintf("remap: %.2f %% (optimum %.2f %%)", 100*report.Remap.Moved, 100*report.Remap.Optimum); lines[6] != want {
		t.Errorf("got %q, want %q", lines[6], want)
	}
	longest := slices.MaxFunc(report.Nodes, func(a, b ringShare) int { return int(1e6 * (a.After.share() - b.After.share())) }).After.Share
	for i, n := range report.Nodes {
		line := lines[i+1]
		if !strings.HasPrefix(line, legible(n.Name)+" ") || line != strings.TrimRight(line, " ") {
			t.Errorf("got %q, want a line of %q", line, n.Name)
		}
		if n.After != nil && line[strings.Index(lines[0], "SHARE")-3:][:8] != fmt.Sprintf("%6.2f %%", 100*n.After.Share) {
			t.Errorf("got %q, want %.2f %% under SHARE of %q", line, 100*n.After.Share, lines[0])
		}
		if got, want := strings.Count(line, "#"), barWidth*n.After.share()/longest; math.Abs(float64(got)-want) > 0.5+1e-9 {
			t.Errorf("got a bar of %d in %q, want %.2f", got, line, want)
		}
	}
}

func (o *ringOwn) share() float64 {
	if o == nil {
		return 0
	}
	return o.Share
}

func TestRingBadInput(t *testing.T) {
	for _, tc := range []struct {
		name  string
		args  []string
		words []string
	}{
		{"no nodes", nil, []string{"--nodes"}},
		{"an empty list", []string{"--nodes="}, []string{"--nodes"}},
		{"an empty name", []string{"--nodes", "a,,b"}, []string{"without a name"}},
		{"a name twice", []string{"--nodes", "a,b,a"}, []string{`"a"`, "twice"}},
		{"no weight", []string{"--nodes", "a=,b"}, []string{"--nodes", `"a="`, "NAME=WEIGHT"}},
		{"a weight that is no number", []string{"--nodes", "a,b=heavy"}, []string{"--nodes", `"b=heavy"`, "NAME=WEIGHT"}},
		{"weight zero", []string{"--nodes", "a,b=0"}, []string{`"b"`, "weight"}},
		{"weight negative", []string{"--nodes", "a,b=-1"}, []string{`"b"`, "weight", "-1"}},
		{"weight not a number", []string{"--nodes", "a,b=nan"}, []string{`"b"`, "weight", "NaN"}},
		{"too small a part", []string{"--nodes", "a,b=1e-6"}, []string{`"b"`, "weight", "buckets"}},
		{"added twice", []string{"--nodes", "a", "--add", "b,b"}, []string{`"b"`, "twice"}},
		{"added and there", []string{"--nodes", "a", "--add", "a"}, []string{`"a"`, "twice"}},
		{"removed and not there", []string{"--nodes", "a", "--remove", "b"}, []string{"--remove", `"b"`, "not in the ring"}},
		{"removed twice", []string{"--nodes", "a,b", "--remove", "b,b"}, []string{"--remove", `"b"`, "not in the ring"}},
		{"all removed", []string{"--nodes", "a", "--remove", "a"}, []string{"no nodes"}},
		{"negative keys", []string{"--nodes", "a", "--keys=-1"}, []string{"--keys", "-1"}},
		{"keys that are no number", []string{"--nodes", "a", "--keys", "many"}, []string{"--keys", "many"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			oneError(t, shardkit(t, t.Context(), "", append([]string{"ring"}, tc.args...)...), exitUsage, tc.words...)
		})
	}
}

func TestRingStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	oneError(t, shardkit(t, ctx, "", "ring", "--nodes", "a,b", "--keys", strconv.Itoa(math.MaxInt)), exitFailed, "canceled")
}
