package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	speedRounds = 101 // the median of the rounds ignores those in which something else ran
	atLeast     = 3.0 // times as fast as each peer
)

type timing struct {
	ns    float64 // per key, median of the rounds
	ratio float64 // to ours in the same round, median of the rounds
}

// measure times the peers in turn, each round starting with another one, so that a slow spell of the machine falls on all
// of them and cancels in the ratios.
func measure(peers []Peer, keys []string) []timing {
	ns, ratios := make([][]float64, len(peers)), make([][]float64, len(peers))
	now := make([]float64, len(peers))
	for round := range speedRounds {
		for i := range peers {
			p := (i + round) % len(peers)
			start := time.Now()
			sink ^= peers[p].All(keys)
			now[p] = float64(time.Since(start).Nanoseconds()) / float64(len(keys))
		}
		for p := range peers {
			ns[p] = append(ns[p], now[p])
			ratios[p] = append(ratios[p], now[p]/now[0])
		}
	}
	out := make([]timing, len(peers))
	for p := range peers {
		out[p] = timing{median(ns[p]), median(ratios[p])}
	}
	return out
}

var sink uint16

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// TestSlotSpeed asserts the ratio for keys of 16 to 64 bytes and prints the others. A key of 16 bytes with a tag is among the
// others: ten bytes are left to hash, and the search for the braces costs everyone the same.
func TestSlotSpeed(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector slows implementations unequally")
	}
	if testing.CoverMode() != "" {
		t.Skip("coverage counters slow implementations unequally")
	}
	vectors := readVectors(t)
	peers := append([]Peer{Ours}, Others...)

	results := make([][]timing, len(keySets))
	for i, set := range keySets {
		results[i] = measure(peers, set.keys())
		if !set.asserted {
			continue
		}
		for p, peer := range peers[1:] {
			if got := results[i][p+1].ratio; got < atLeast {
				t.Errorf("keys of %s bytes, tagged: %v: %.2f times as fast as %s, want %.1f", set.name, set.tagged, got, peer.Name, atLeast)
			}
		}
	}

	for _, tagged := range []bool{false, true} {
		var b strings.Builder
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(w, "wrong\t")
		for _, set := range keySets {
			if set.tagged == tagged {
				fmt.Fprintf(w, "%s B\t", set.name)
			}
		}
		fmt.Fprintln(w)
		for p, peer := range peers {
			fmt.Fprintf(w, "%d/%d\t", len(wrong(peer, vectors)), len(vectors))
			for i, set := range keySets {
				if set.tagged != tagged {
					continue
				}
				if p == 0 {
					fmt.Fprintf(w, "%.1f\t", results[i][p].ns)
				} else {
					fmt.Fprintf(w, "%.1f (%.1fx)\t", results[i][p].ns, results[i][p].ratio)
				}
			}
			fmt.Fprintf(w, " %s\n", peer.Name)
		}
		w.Flush()
		t.Logf("ns per key, tagged: %v (in brackets: the time relative to slotmap's)\n%s", tagged, b.String())
	}
}
