package ring

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
)

// reference is rendezvous hashing as the definition has it: every node scored for the bucket, all of them sorted. It takes the
// random bits from the code under test, and everything else from elsewhere: the permutation by its definition, the
// logarithm from package math. It knows no limits, no blocks and no packing. It answers nil where two costs are so near that rounding
// decides.
func reference(nodes []Node, bucket int, live func(string) bool) []string {
	type scored struct {
		name string
		cost float64
	}
	var all []scored
	for _, n := range nodes {
		if !live(n.Name) {
			continue
		}
		s := newScorer(n)
		bits := uint64(s.draw(bucket / 1024))
		odd := func(x uint64) uint64 { return x%1024 | 1 }
		x := (uint64(bucket%1024)*odd(bits) + bits>>30) % 1024
		x ^= x / 32
		x = x * odd(bits>>10) % 1024
		x ^= x / 32
		x = x * odd(bits>>20) % 1024
		v := float64(bits>>42|1) / (1 << 22) // within the stratum
		at := func(k uint64) float64 {
			if k == 1024 {
				return 13
			}
			return -math.Log2(1 - float64(k)/1024)
		}
		all = append(all, scored{n.Name, (at(x)*(1-v) + at(x+1)*v) / n.Weight})
	}
	slices.SortFunc(all, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.name, b.name))
	})
	names := make([]string, len(all))
	for i, s := range all {
		if i > 0 && s.cost-all[i-1].cost < 1e-9*s.cost {
			return nil
		}
		names[i] = s.name
	}
	return names
}

func TestTableAgainstReference(t *testing.T) {
	rnd := random(t)
	for range times(40) {
		nodes := randomNodes(rnd, 1+rnd.IntN(20))
		r := mustNew(t, nodes, &Options{Placement: Table{Buckets: 1 << (14 + rnd.IntN(3))}})
		dead := map[string]bool{}
		for _, n := range nodes[1:] {
			dead[n.Name] = rnd.IntN(4) == 0
		}
		var names []string
		for name, down := range dead {
			if down {
				names = append(names, name)
			}
		}
		over := must(t)(r.WithDown(names...))
		for range 2000 {
			b := rnd.IntN(len(r.owners))
			for _, c := range []struct {
				r    *Ring
				want []string
			}{
				{r, reference(nodes, b, func(string) bool { return true })},
				{over, reference(nodes, b, func(name string) bool { return !dead[name] })},
			} {
				if c.want == nil {
					continue
				}
				got := make([]string, 0, len(nodes))
				for _, i := range c.r.appendN(nil, b, len(nodes)) {
					got = append(got, c.r.Name(i))
				}
				if !slices.Equal(got, c.want) {
					t.Fatalf("bucket %d of %v, down %v:\ngot  %v\nwant %v", b, nodes, c.r.Down(), got, c.want)
				}
				for i := range 3 {
					got, want := c.r.trio(b).node(i), -1
					if i < len(c.want) {
						want, _ = c.r.Find(c.want[i])
					}
					if got != want {
						t.Fatalf("bucket %d of %v, down %v: node %d is %d, want %d", b, nodes, c.r.Down(), i, got, want)
					}
				}
			}
		}
	}
}

// Every bucket, at the sizes where the build visits a different part of the costs.
func TestOwnersAgainstFullScores(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 100, 500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r := mustNew(t, Nodes(numbered(n)...), nil)
			step := 1
			if n > 10 {
				step = 1 + n/10
			}
			for b := 0; b < len(r.owners); b += step {
				if want := r.table.best(b, r.live).node(); r.owners[b] != want {
					t.Fatalf("bucket %d: got node %d, want %d", b, r.owners[b], want)
				}
			}
		})
	}
}
