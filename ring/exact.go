package ring

import (
	"cmp"
	"math"
	"slices"
)

// even returns owners among which every node has its quota.
//
// Weights are changed a little until the counts nearly are the quotas, and a few buckets are moved by hand for the rest. It
// looks at one membership alone, as it must for every process to find the same table. But costs are the same whoever
// else is there, and the changes are small: so with one node more or less, few buckets move that need not have.
// (Moving by hand alone moves a fifth more of them, and a given ring exceeds 0.4 % of the keys once in 2500 times.)
func (t *table) even(nodes []Node) []uint16 {
	const rounds = 2 // after which a third would move hardly a bucket
	quotas := quotas(nodes, t.cells())
	evened := &table{bits: t.bits, logs: t.logs, scorers: slices.Clone(t.scorers)}
	nodes = slices.Clone(nodes)
	owners := evened.owners(nodes)
	for range rounds {
		counts := counts(owners, len(nodes))
		for i := range nodes {
			// Rounded, for the sum of the weights must not be fused with it.
			nodes[i].Weight = float64(nodes[i].Weight * float64(quotas[i]) / float64(max(counts[i], 1)))
			evened.scorers[i].rate = 1 / nodes[i].Weight
		}
		owners = evened.owners(nodes)
	}
	evened.level(owners, quotas)
	return owners
}

func counts(owners []uint16, nodes int) []int {
	counts := make([]int, nodes)
	for _, o := range owners {
		counts[o]++
	}
	return counts
}

// transfer is a bucket that a node with too many could give to one with too few. Its regret is how many times the owner's
// cost the taker's is.
type transfer struct {
	regret   float64
	bucket   int
	from, to uint16
}

// level moves as few buckets as make every node's count its quota, those of least regret first.
func (t *table) level(owners []uint16, quotas []int) {
	surplus := counts(owners, len(quotas))
	left := 0
	for i, quota := range quotas {
		surplus[i] -= quota
		left += max(surplus[i], 0)
	}

	// Those of low regret are looked for first, so that few have to be sorted.
	var transfers []transfer
	for low, high := 1.0, 1.02; left > 0; low, high = high, 1+2*(high-1) {
		transfers = t.transfers(transfers[:0], owners, surplus, low, high)
		for _, m := range transfers {
			if surplus[m.from] > 0 && surplus[m.to] < 0 && owners[m.bucket] == m.from {
				owners[m.bucket] = m.to
				surplus[m.from]--
				surplus[m.to]++
				left--
			}
		}
	}
}

// transfers appends those whose regret is at least low and below high, the least first.
func (t *table) transfers(dst []transfer, owners []uint16, surplus []int, low, high float64) []transfer {
	var costs [strata]float64 // of the owner, where it has too many
	var takes [strata]candidate
	for first := 0; first < len(owners); first += strata {
		highest := 0.0
		for i := range costs {
			costs[i] = 0
			if owner := int(owners[first+i]); surplus[owner] > 0 {
				costs[i] = t.candidate(first+i, owner).cost()
				highest = max(highest, costs[i])
			}
		}
		beyond := newLimit(high * highest)
		for node := range t.scorers {
			if surplus[node] >= 0 {
				continue
			}
			for i := range takes {
				takes[i] = beyond
			}
			t.scorers[node].visit(&takes, t.logs, first/strata, node, beyond)
			for i, c := range &takes {
				if c == beyond || costs[i] == 0 {
					continue
				}
				if regret := c.cost() / costs[i]; low <= regret && regret < high {
					dst = append(dst, transfer{regret, first + i, owners[first+i], uint16(node)})
				}
			}
		}
	}
	slices.SortFunc(dst, func(a, b transfer) int {
		return cmp.Or(cmp.Compare(a.regret, b.regret), cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.to, b.to))
	})
	return dst
}

// quotas divides n by weight into whole numbers: each part rounded down, and what is left to the largest remainders, the
// earlier name first.
func quotas(nodes []Node, n int) []int {
	total := totalWeight(nodes)
	quotas := make([]int, len(nodes))
	remainders := make([]float64, len(nodes))
	order := make([]int, len(nodes))
	left := n
	for i, node := range nodes {
		part := float64(node.Weight / total * float64(n)) // rounded, never fused with the subtraction below
		whole := math.Floor(part)
		quotas[i], remainders[i], order[i] = int(whole), part-whole, i
		left -= quotas[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(remainders[b], remainders[a]) })
	for _, i := range order[:left] {
		quotas[i]++
	}
	return quotas
}
