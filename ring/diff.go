package ring

import (
	"cmp"
	"math"
	"slices"
)

// Change is what lies between two rings.
type Change struct {
	// Moved is the part of the hash space whose owner differs, from 0 to 1: what to expect of keys, so long as no few of them
	// are most of the traffic.
	Moved float64
	// Moves has an entry for each pair of nodes between which anything moved, ordered by From and To. Their shares sum to Moved.
	Moves []Move
}

// Move is the part of the hash space, from 0 to 1, that went from one node to another.
type Move struct {
	From, To string
	Share    float64
}

// Diff compares the owners of all keys in two rings, overlays included. It compares the tables, not a sample of keys.
//
// It fails where the rings hash keys differently, so that nothing but keys could be compared: a [Table] with a [Classic], or with
// [Options.HashTags] and without. Tables of different numbers of buckets can be compared.
func Diff(before, after *Ring) (Change, error) {
	if (before.circle == nil) != (after.circle == nil) || before.tags != after.tags {
		return Change{}, errorf("cannot compare rings that hash keys differently: %s, %s", before.describe(), after.describe())
	}
	type pair struct{ from, to uint16 }
	shares := make(map[pair]float64)
	a, b := before.spans(), after.spans()
	for start, done := uint64(0), false; !done; {
		end := min(a[0].end, b[0].end)
		from, to := a[0].node, b[0].node
		if before.nodes[from].Name != after.nodes[to].Name {
			shares[pair{from, to}] += float64(end-start) + 1
		}
		if a[0].end == end {
			a = a[1:]
		}
		if b[0].end == end {
			b = b[1:]
		}
		start, done = end+1, end == math.MaxUint64
	}

	var c Change
	for p, share := range shares {
		c.Moves = append(c.Moves, Move{before.nodes[p.from].Name, after.nodes[p.to].Name, share / (1 << 64)})
	}
	slices.SortFunc(c.Moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for _, m := range c.Moves {
		c.Moved += m.Share
	}
	return c, nil
}

// Shares returns the part of the hash space, from 0 to 1, that each node owns: zero for those that are down.
func (r *Ring) Shares() []float64 {
	shares := make([]float64, len(r.nodes))
	start := uint64(0)
	for _, s := range r.spans() {
		shares[s.node] += (float64(s.end-start) + 1) / (1 << 64)
		start = s.end + 1
	}
	return shares
}

// span is a run of hashes, up to and including end, that one node owns.
type span struct {
	end  uint64
	node uint16
}

// spans returns the whole hash space in ascending order, none empty, the last ending in the highest hash.
func (r *Ring) spans() []span {
	spans := make([]span, 0, len(r.owners)+1)
	if r.circle == nil {
		width := uint64(1) << (64 - r.table.bits)
		for b, owner := range r.owners {
			spans = append(spans, span{uint64(b)*width + width - 1, owner})
		}
		return spans
	}
	for i, h := range r.circle.hashes {
		// Of points that coincide only the first has an arc.
		if i == 0 || h != r.circle.hashes[i-1] {
			spans = append(spans, span{uint64(h)<<32 | math.MaxUint32, r.owners[i]})
		}
	}
	if last := spans[len(spans)-1]; last.end != math.MaxUint64 {
		spans = append(spans, span{math.MaxUint64, r.owners[0]})
	}
	return spans
}
