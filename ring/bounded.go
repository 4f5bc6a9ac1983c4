package ring

import "math"

// IndexBounded returns the first live node in the key's order that may take one more unit of load, so that no node holds much
// more than its share however skewed the keys are. loads[i] is what node i holds now (requests in flight, connections), which the caller
// counts; those of nodes that are down do not count.
//
// With m the sum of the loads with the new unit, a node's share is the part of m that its weight is of the live nodes'. It
// takes the unit if it then holds at most (1+eps) times its share, or at most its share rounded up: the second matters while
// shares are small, and is why some node always has room. The smaller eps, the further keys go from their owners: with
// Zipf-distributed keys (exponent 1.1) on 10 nodes, 0.25 leaves six in seven at home.
//
// It is Consistent Hashing with Bounded Loads (Mirrokni, Thorup, Zadimoghaddam, 2018), but for rounding down what the
// paper rounds up.
//
// It fails where loads does not have one entry for each node, none negative, or eps is not a positive number. It adds up the loads,
// so it takes time in proportion to the nodes; it allocates only in a ring of more than 8 nodes, when the first three are
// full.
func (r *Ring) IndexBounded(key string, loads []int64, eps float64) (int, error) {
	if len(loads) != len(r.nodes) {
		return 0, errorf("%d loads for %d nodes", len(loads), len(r.nodes))
	}
	if !(eps > 0) || math.IsInf(eps, 1) {
		return 0, errorf("eps %v: want a positive number", eps)
	}
	total, weight := 1.0, 0.0
	for i, load := range loads {
		if load < 0 {
			return 0, errorf("load %d of node %q: want no negative number", load, r.nodes[i].Name)
		}
		if r.live[i] {
			total += float64(load)
			weight += r.nodes[i].Weight
		}
	}

	var array [8]int
	order := r.AppendN(array[:0], key, 3)
	for tried := 0; ; {
		for _, node := range order[tried:] {
			share := r.nodes[node].Weight / weight * total
			if float64(loads[node]+1) <= max((1+eps)*share, math.Ceil(share)) {
				return node, nil
			}
		}
		if tried > 0 {
			// Rounding of a sum of many weights left no room by a hair.
			return order[0], nil
		}
		tried = len(order)
		order = r.AppendN(order[:0], key, len(r.nodes))
	}
}
