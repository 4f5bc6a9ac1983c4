package ring

// Group is the keys of one node.
type Group struct {
	Node int    // its number
	Name string // its name
	Keys []int  // positions in the slice that was grouped, ascending
}

// Group sorts keys by their owners, for one request per node. Groups come in the order of the nodes, none is empty, and every
// position is in exactly one: so an answer can be put back in the place of its key, and a node that does not answer
// leaves a known gap. All are placed by this one ring; with a [Live], take one [Live.Snapshot] for the whole operation.
func (r *Ring) Group(keys []string) []Group {
	owners := make([]uint16, len(keys))
	counts := make([]int, len(r.nodes))
	groups := 0
	for i, key := range keys {
		owner := r.owners[r.cell(key)]
		owners[i] = owner
		if counts[owner]++; counts[owner] == 1 {
			groups++
		}
	}
	positions := make([]int, 0, len(keys))
	byNode := make([][]int, len(r.nodes))
	grouped := make([]Group, 0, groups)
	for node, n := range counts {
		if n > 0 {
			start := len(positions)
			positions = positions[:start+n]
			byNode[node] = positions[start:start:len(positions)]
		}
	}
	for i, owner := range owners {
		byNode[owner] = append(byNode[owner], i)
	}
	for node, keys := range byNode {
		if len(keys) > 0 {
			grouped = append(grouped, Group{node, r.nodes[node].Name, keys})
		}
	}
	return grouped
}
