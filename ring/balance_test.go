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

// By the binomial distribution, with what strata take from it, one ring in 20,000 exceeds each of these worst cases: of batches of 200
// one in a hundred. Three in a row are one in a million, and no accident.
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
			for batch := 1; ; batch++ {
				var all []float64
				for range max(times(200), 40) {
					all = append(all, excess(mustNew(t, Nodes(randomNames(rnd, c.nodes)...), nil)))
				}
				slices.Sort(all)
				median, worst := all[len(all)/2], all[len(all)-1]
				t.Logf("%d nodes, %d sets of names: median %.2f %%, worst %.2f %% above a node's share", c.nodes, len(all), median, worst)
				if median > c.median && len(all) == 200 {
					t.Fatalf("median: got %.2f %%, want at most %v %%", median, c.median)
				}
				if worst <= c.worst {
					return
				}
				if batch == 3 {
					t.Fatalf("worst: got %.2f %%, want at most %v %%, and so in three batches", worst, c.worst)
				}
			}
		})
	}
}

func TestBalanceByBuckets(t *testing.T) {
	rnd := random(t)
	for _, c := range []struct {
		bits          int
		median, worst float64
	}{
		{14, 3.5, 9},
		{18, 1, 2.2}, // the median of few sets varies
		{20, 0.65, 1.1},
	} {
		var all []float64
		for range times(1 << (23 - c.bits)) {
			all = append(all, excess(mustNew(t, Nodes(randomNames(rnd, 10)...), &Options{Placement: Table{Buckets: 1 << c.bits}})))
		}
		slices.Sort(all)
		median, worst := all[len(all)/2], all[len(all)-1]
		t.Logf("10 nodes on 1<<%d buckets, %d sets: median %.2f %%, worst %.2f %%", c.bits, len(all), median, worst)
		if median > c.median && len(all) >= 8 || worst > c.worst {
			t.Errorf("1<<%d buckets: got median %.2f %%, worst %.2f %%, want at most %v and %v", c.bits, median, worst, c.median, c.worst)
		}
	}
}

func TestWeights(t *testing.T) {
	rnd := random(t)
	weights := []float64{1, 2, 3}
	n := max(times(200), 20)
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
	if worst > 3 {
		t.Errorf("got a share %.2f %% off, want at most 3 %%", worst)
	}
	for i, mean := range means {
		if math.Abs(mean-1) > 0.003*math.Sqrt(200/float64(n)) {
			t.Errorf("weight %v: got on average %.4f of its share, want 1", weights[i], mean)
		}
	}
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
