package ring

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Requests for keys of which few are most, as many in flight as ever: what the plain ring and the bounded one make of it.
func TestBoundedLoadOfSkewedKeys(t *testing.T) {
	const nodes, inFlight, eps = 10, 10_000, 0.25
	rnd := random(t)
	r := mustNew(t, Nodes(numbered(nodes)...), nil)
	zipf := rand.NewZipf(rnd, 1.1, 1, 1<<20)
	keys := make([]string, 1<<20+1)

	plain, bounded := make([]int64, nodes), make([]int64, nodes)
	type request struct{ owner, node int }
	var requests []request
	worst, worstPlain, home, steady := 0.0, 0.0, 0, 0
	for i := range inFlight + times(100_000) {
		if len(requests) == inFlight {
			at := rnd.IntN(inFlight)
			plain[requests[at].owner]--
			bounded[requests[at].node]--
			requests[at] = requests[inFlight-1]
			requests = requests[:inFlight-1]
		}
		k := zipf.Uint64()
		if keys[k] == "" {
			keys[k] = fmt.Sprintf("key-%d", k)
		}
		owner := r.Index(keys[k])
		node, err := r.IndexBounded(keys[k], bounded, eps)
		if err != nil {
			t.Fatal(err)
		}
		plain[owner]++
		bounded[node]++
		requests = append(requests, request{owner, node})
		if i >= inFlight {
			mean := float64(len(requests)) / nodes
			worst = max(worst, float64(slices.Max(bounded))/mean)
			worstPlain = max(worstPlain, float64(slices.Max(plain))/mean)
			steady++
			if node == owner {
				home++
			}
		}
	}
	t.Logf("Zipf 1.1, %d nodes, %d in flight: most loaded over mean %.2f, with eps %v %.4f and %.1f %% of the requests at their owner",
		nodes, inFlight, worstPlain, eps, worst, 100*float64(home)/float64(steady))
	if worst > 1+eps {
		t.Errorf("most loaded over mean: got %v, want at most %v", worst, 1+eps)
	}
	if worstPlain < 1.4 {
		t.Errorf("without a bound: got %v, which shows nothing", worstPlain)
	}
}

func TestIndexBounded(t *testing.T) {
	nodes := Nodes("a", "b", "c")
	for _, p := range placements {
		r := mustNew(t, nodes, &Options{Placement: p})
		var without [3]*Ring
		for i := range without {
			without[i] = must(t)(r.WithDown(r.Name(i)))
		}
		for i := range 200 {
			key := fmt.Sprintf("key-%d", i)
			order := r.AppendN(nil, key, 3)
			pick := func(r *Ring, loads []int64, eps float64) int {
				t.Helper()
				node, err := r.IndexBounded(key, loads, eps)
				if err != nil {
					t.Fatal(err)
				}
				return node
			}
			if got := pick(r, make([]int64, 3), 0.25); got != order[0] {
				t.Fatalf("no load: got node %d, want the owner of %v", got, order)
			}
			full := make([]int64, 3)
			full[order[0]] = 100
			if got := pick(r, full, 0.25); got != order[1] {
				t.Fatalf("the owner is full: got node %d, want the second of %v", got, order)
			}
			full[order[1]] = 100
			if got := pick(r, full, 0.25); got != order[2] {
				t.Fatalf("two are full: got node %d, want the third of %v", got, order)
			}
			if got := pick(r, full, 1000); got != order[0] {
				t.Fatalf("a large eps: got node %d, want the owner of %v", got, order)
			}
			// What is down takes nothing, and its load does not count.
			alone := make([]int64, 3)
			alone[order[0]] = 1 << 40
			if got := pick(without[order[0]], alone, 0.25); got != order[1] {
				t.Fatalf("the owner is down: got node %d, want the second of %v", got, order)
			}
		}
	}
}

// However full, some node takes the next unit, and none is ever beyond its bound.
func TestBoundedAlwaysFindsRoom(t *testing.T) {
	rnd := random(t)
	for range times(60) {
		r := mustNew(t, randomNodes(rnd, 1+rnd.IntN(20)), &Options{Placement: placements[rnd.IntN(len(placements))]})
		r = must(t)(r.WithDown(randomDown(rnd, r)...))
		eps := math.Exp2(-rnd.Float64() * 12)
		weight := 0.0
		for i, n := range r.Nodes() {
			if r.IsLive(i) {
				weight += n.Weight
			}
		}
		loads := make([]int64, r.Len())
		for total := 1.0; total < 1000; total++ {
			node, err := r.IndexBounded(fmt.Sprintf("key-%d", rnd.IntN(3)), loads, eps)
			if err != nil || !r.IsLive(node) {
				t.Fatalf("%v, down %v: got node %d, %v", r.Nodes(), r.Down(), node, err)
			}
			loads[node]++
			share := r.Nodes()[node].Weight / weight * total
			if bound := max((1+eps)*share, math.Ceil(share-1e-9)); float64(loads[node]) > bound+1e-9 {
				t.Fatalf("node %d holds %d of %v, eps %v, want at most %v", node, loads[node], total, eps, bound)
			}
		}
	}
}

func TestIndexBoundedRefuses(t *testing.T) {
	r := mustNew(t, Nodes("a", "b"), nil)
	for _, c := range []struct {
		name  string
		loads []int64
		eps   float64
	}{
		{"too few loads", []int64{1}, 0.25},
		{"too many loads", []int64{1, 2, 3}, 0.25},
		{"no loads", nil, 0.25},
		{"a negative load", []int64{1, -1}, 0.25},
		{"eps zero", []int64{1, 1}, 0},
		{"eps negative", []int64{1, 1}, -0.1},
		{"eps not a number", []int64{1, 1}, math.NaN()},
		{"eps infinite", []int64{1, 1}, math.Inf(1)},
	} {
		if _, err := r.IndexBounded("key", c.loads, c.eps); err == nil {
			t.Errorf("%s: got no error", c.name)
		}
	}
	if _, err := r.IndexBounded("key", []int64{math.MaxInt64 - 1, math.MaxInt64 - 1}, 0.25); err != nil {
		t.Errorf("loads near the largest number: %v", err)
	}
}
