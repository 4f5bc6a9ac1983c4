package ring

import (
	"math/bits"
	"slices"
)

// Table is the placement that a nil [Options.Placement] stands for: a table of buckets, each owned by weighted rendezvous.
//
// A key's hash names its bucket. For every bucket each node has a cost, -log2(u)/weight, where u is a number between 0 and 1
// that depends on the node's name and the bucket alone; the lowest cost owns the bucket, and the ascending costs are the
// order of [Ring.LocateN] and of failover. So a node that comes or goes, or changes its weight, moves no key
// between two others. (Thaler, Ravishankar: Using Name-Based Mappings to Increase Hit Rates, 1998. Schindelhauer,
// Schomaker: Weighted Distributed Hash Tables, 2005, "logarithmic method".)
type Table struct {
	// Buckets is a power of two from 1<<14 to 1<<20; zero means 1<<16. A bucket takes 6 bytes. More buckets spread the
	// keys more evenly, by the square root, and another number of buckets is another ring: nearly all keys move.
	Buckets int

	// Exact gives every node its weight's part of the buckets, to within one. The price: when a node comes or goes, up
	// to 0.4 % of the keys move between two others, and [New] takes several times as long.
	//
	// Why there is a price: that a table be exact, depend on nothing but its members, and move no key between two that stay
	// cannot all be had.
	Exact bool
}

const (
	minBucketBits     = 14
	defaultBucketBits = 16
	maxBucketBits     = 20

	// minShare is the least number of buckets that a node may expect. A node that expects 32 is given none about once in
	// 10^14 rings; one that expects 1 would be given none in every third.
	minShare = 32
)

// table scores nodes for buckets.
type table struct {
	bits    int
	logs    *[strata + 1]uint64
	scorers []scorer // by node
}

func (p Table) bits() (int, error) {
	if p.Buckets == 0 {
		return defaultBucketBits, nil
	}
	n := bits.TrailingZeros(uint(p.Buckets))
	if p.Buckets != 1<<n || n < minBucketBits || n > maxBucketBits {
		return 0, errorf("%d buckets: want a power of two from %d to %d", p.Buckets, 1<<minBucketBits, 1<<maxBucketBits)
	}
	return n, nil
}

func newTable(p Table, nodes []Node) (*table, error) {
	n, err := p.bits()
	if err != nil {
		return nil, err
	}
	total := totalWeight(nodes)
	for _, node := range nodes {
		if share := node.Weight / total * float64(int(1)<<n); share < minShare {
			return nil, &NodeError{node.Name, shareError(node.Weight, share, 1<<n)}
		}
	}
	t := &table{bits: n, logs: logTable(), scorers: make([]scorer, len(nodes))}
	seeds := make(map[uint64]bool, len(nodes))
	for i, node := range nodes {
		t.scorers[i] = newScorer(node)
		if seeds[t.scorers[i].seed] {
			return nil, &NodeError{node.Name, ErrCollision}
		}
		seeds[t.scorers[i].seed] = true
	}
	return t, nil
}

func (t *table) cells() int { return 1 << t.bits }

func (t *table) candidate(bucket, node int) candidate {
	s := &t.scorers[node]
	d := s.draw(bucket >> strataBits)
	k := d.stratum(uint32(bucket)) & strataMask
	return newCandidate(log(t.logs[k], t.logs[k+1], d.offset()), s.rate, node)
}

// best returns the live node of lowest cost.
func (t *table) best(bucket int, live []bool) candidate {
	best := noCandidate
	for i := range t.scorers {
		if live[i] {
			best = min(best, t.candidate(bucket, i))
		}
	}
	return best
}

// rank appends the first n live nodes in the bucket's order.
func (t *table) rank(dst []uint16, bucket int, live []bool, n int) []uint16 {
	var array [64]candidate
	order := array[:0]
	for i := range t.scorers {
		if live[i] {
			order = append(order, t.candidate(bucket, i))
		}
	}
	slices.Sort(order)
	for _, c := range order[:min(n, len(order))] {
		dst = append(dst, c.node())
	}
	return dst
}

// nearest is rank for the first three, without the sorting.
func (t *table) nearest(dst []uint16, bucket int, live []bool) []uint16 {
	first, second, third := noCandidate, noCandidate, noCandidate
	for i := range t.scorers {
		if live[i] {
			c := t.candidate(bucket, i)
			third = min(third, max(second, c))
			second = min(second, max(first, c))
			first = min(first, c)
		}
	}
	for _, c := range [...]candidate{first, second, third} {
		if c != noCandidate {
			dst = append(dst, c.node())
		}
	}
	return dst
}

// owners returns the best node of every bucket.
//
// Scoring every node for every bucket would take time in proportion to both. But in a large ring a bucket is won at a low
// cost, so in each block only the low costs are visited: the strata of each node in ascending order, up to a limit which
// a bucket's best cost exceeds with probability 1/4N. Those buckets are then scored in full.
func (t *table) owners(nodes []Node) []uint16 {
	beyond := newLimit(float64(bits.Len(uint(len(nodes)))+2) * logUnit / totalWeight(nodes))
	live := allLive(len(nodes))

	owners := make([]uint16, t.cells())
	var best [strata]candidate
	for first := 0; first < len(owners); first += strata {
		for i := range best {
			best[i] = beyond
		}
		for node := range t.scorers {
			t.scorers[node].visit(&best, t.logs, first/strata, node, beyond)
		}
		for i, c := range &best {
			if c == beyond {
				c = t.best(first+i, live)
			}
			owners[first+i] = c.node()
		}
	}
	return owners
}
