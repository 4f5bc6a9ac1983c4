package ring

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// excess returns how far, in per cent, the most loaded node's share of the cells is above what its weight makes it.
func excess(r *Ring) float64 {
	total, worst := totalWeight(r.nodes), 0.0
	for i, share := range r.Shares() {
		worst = max(worst, share/(r.nodes[i].Weight/total)-1)
	}
	return worst * 100
}

// Of random names, one ring of 3 nodes in 50,000 exceeds 1.5 %, and one of 10 nodes in 8,500 exceeds 3.5 %.
func TestBalance(t *testing.T) {
	for _, c := range []struct {
		nodes         int
		median, worst float64
	}{
		{3, 0.45, 1.5},
		{10, 1.5, 3.5},
	} {
		t.Run(fmt.Sprint(c.nodes), func(t *testing.T) {
			rnd := random(t)
			untilWithin(t, c.worst, "the worst share", func() float64 {
				var all []float64
				for range max(times(200), 10) {
					all = append(all, excess(mustNew(t, Nodes(randomNames(rnd, c.nodes)...), nil)))
				}
				slices.Sort(all)
				median, worst := all[len(all)/2], all[len(all)-1]
				t.Logf("%d nodes, %d sets of names: median %.2f %%, worst %.2f %% above a node's share", c.nodes, len(all), median, worst)
				if median > c.median && len(all) == 200 {
					t.Fatalf("median: got %.2f %%, want at most %v %%", median, c.median)
				}
				return worst
			})
		})
	}
}

// untilWithin measures a batch, and up to four: a bound that chance alone breaks in one batch of fifty is broken in four one after
// another once in six million runs, and otherwise for a reason.
func untilWithin(t *testing.T, most float64, what string, batch func() float64) {
	t.Helper()
	const batches = 4
	for range batches {
		if batch() <= most {
			return
		}
	}
	t.Errorf("%s was above %v %% in %d batches", what, most, batches)
}

// Bounds that chance breaks less than once in a million runs, for few sets vary.
func TestBalanceByBuckets(t *testing.T) {
	rnd := random(t)
	for _, c := range []struct {
		bits          int
		median, worst float64
	}{
		{14, 3.5, 11},
		{18, 1, 2.75},
		{20, 0.65, 1.4},
	} {
		var all []float64
		for range times(1 << (23 - c.bits)) {
			all = append(all, excess(mustNew(t, Nodes(randomNames(rnd, 10)...), &Options{Placement: Table{Buckets: 1 << c.bits}})))
		}
		slices.Sort(all)
		median, worst := all[len(all)/2], all[len(all)-1]
		t.Logf("10 nodes on 1<<%d buckets, %d sets: median %.2f %%, worst %.2f %%", c.bits, len(all), median, worst)
		// The median of a few sets says little, but for the most buckets, whose bound is far away.
		if median > c.median && len(all) == 1<<(23-c.bits) || worst > c.worst {
			t.Errorf("1<<%d buckets: got median %.2f %%, worst %.2f %%, want at most %v and %v", c.bits, median, worst, c.median, c.worst)
		}
	}
}

// One ring in some 200,000 exceeds 3 %.
func TestWeights(t *testing.T) {
	rnd := random(t)
	weights := []float64{1, 2, 3}
	n := max(times(200), 20)
	untilWithin(t, 3, "the share that is furthest off", func() float64 {
		worst := 0.0
		means := make([]float64, len(weights))
		for range n {
			nodes := Nodes(randomNames(rnd, len(weights))...)
			for i := range nodes {
				nodes[i].Weight = weights[i]
			}
			r := mustNew(t, nodes, nil)
			shares := r.Shares()
			for i, node := range nodes {
				at, _ := r.Find(node.Name)
				ratio := shares[at] / (node.Weight / 6)
				worst = max(worst, math.Abs(ratio-1)*100)
				means[i] += ratio / float64(n)
			}
		}
		t.Logf("weights %v, %d sets: at most %.2f %% off a node's share, on average its %.4f", weights, n, worst, means)
		for i, mean := range means {
			if math.Abs(mean-1) > 0.003*math.Sqrt(200/float64(n)) {
				t.Errorf("weight %v: got on average %.4f of its share, want 1", weights[i], mean)
			}
		}
		return worst
	})
}

// What is known of the classic ring.
func TestBalanceClassic(t *testing.T) {
	rnd := random(t)
	var all []float64
	for range 200 { // the median of a few sets would say little
		all = append(all, excess(mustNew(t, Nodes(randomNames(rnd, 3)...), &Options{Placement: Classic{}})))
	}
	slices.Sort(all)
	median := all[len(all)/2]
	t.Logf("3 nodes of 150 points, %d sets: median %.1f %%, worst %.1f %%", len(all), median, all[len(all)-1])
	if median < 2 || median > 10 {
		t.Errorf("median: got %.1f %%, want about 5.6 %%", median)
	}
}
