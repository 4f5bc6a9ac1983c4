package main

import (
	"slices"
	"testing"

	"github.com/shardkit/shardkit/conformance"
)

// atLeast is how many times as fast as go-redis's Ring package ring is asked to be, used alike: hash tags are looked for, and
// nodes may come and go meanwhile. go-redis scores every node, so with more nodes it falls further behind.
const atLeast = 4

func TestFasterThanGoRedis(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector slows implementations unequally")
	}
	if testing.CoverMode() != "" {
		t.Skip("coverage counters slow implementations unequally")
	}
	keys := makeKeys(1<<16, 1)
	for _, nodes := range []int{3, 10, 100} {
		names := nameSet(nodes, 0, 1)
		theirs := goRedis(names)
		times := race([]placed{oursLive(names), theirs}, keys, 300)
		theirs.close()
		// The ratio of each round, for a slow spell of the machine falls on both.
		ratios := make([]float64, len(times[0]))
		for i := range ratios {
			ratios[i] = times[1][i] / times[0][i]
		}
		slices.Sort(ratios)
		ratio := ratios[len(ratios)/2]
		t.Logf("%3d nodes: ring %.1f ns, go-redis %.1f ns a lookup, %.1f times", nodes, slices.Min(times[0]), slices.Min(times[1]), ratio)
		if ratio < atLeast {
			t.Errorf("%d nodes: %.2f times as fast as go-redis's Ring, want %d", nodes, ratio, atLeast)
		}
	}
}

// Nothing that is compared is broken by the comparison: every peer that answers, answers one of the names, and the same again.
func TestPeersAnswer(t *testing.T) {
	keys := makeKeys(1000, 1)
	names := nameSet(5, 0, 1)
	for _, p := range peers[1:] {
		r := p.make(names)
		for _, key := range keys {
			name := r.locate(key)
			if !slices.Contains(names, name) || r.locate(key) != name {
				t.Errorf("%s: key %s is on %q, then on %q", p.name, key, name, r.locate(key))
				break
			}
		}
		if got := r.all(keys); got == 0 {
			t.Errorf("%s: looks nothing up", p.name)
		}
		if r.close != nil {
			r.close()
		}
	}
}

// What the table says of package ring.
func TestOursMovesNothingNeedlessly(t *testing.T) {
	for _, p := range peers {
		if p.name != "ring" && p.name != "ring, classic of 150" {
			continue
		}
		for _, bad := range []string{badWhenOneComes(p, 20_000, 3, 1), badWhenOneGoes(p, 20_000, 3, 1)} {
			if bad != "0" {
				t.Errorf("%s: %s of the keys moved between nodes that stay", p.name, bad)
			}
		}
	}
}

// What is asked of the rings can be answered by them: go-redis's keeps every rule, and modulo, which cares for the order of names,
// breaks the first.
func TestConformance(t *testing.T) {
	for _, j := range judged {
		report, err := conformRing(t.Context(), j.name, j.weights, j.options, 1, conformance.Contract)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range report.Cases {
			want := conformance.StatusPass
			if j.name == "modulo, xxhash" && (c.ID == "RG-001" || c.ID == "RG-003") {
				want = conformance.StatusFail
			}
			if c.Tier == conformance.Contract && c.Status != want {
				t.Errorf("%s: %s %s: %s (%s), want %s\n%s", j.name, c.ID, c.Name, c.Status, c.Reason, want, c.Seen)
			}
		}
	}
}
