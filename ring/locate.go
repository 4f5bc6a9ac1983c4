package ring

// Locate returns the name of the key's owner: the first live node in the key's order.
func (r *Ring) Locate(key string) string { return r.nodes[r.owners[r.cell(key)]].Name }

// Index returns the number of the key's owner (see [Ring.Nodes]).
func (r *Ring) Index(key string) int { return int(r.owners[r.cell(key)]) }

// LocateN returns the names of the first n live nodes in the key's order, the owner first: all of them where fewer are live. They are
// distinct, and the answer for n begins with the answer for n-1. Where the owner goes down, its second node owns the key.
func (r *Ring) LocateN(key string, n int) []string {
	n = min(n, len(r.nodes))
	if n <= 0 {
		return nil
	}
	var array [8]int
	order := r.AppendN(array[:0], key, n)
	names := make([]string, len(order))
	for i, node := range order {
		names[i] = r.nodes[node].Name
	}
	return names
}

// Index3 returns the numbers of the first three nodes in the key's order, -1 in place of one that is not there. It is the fastest
// way to them.
func (r *Ring) Index3(key string) (owner, second, third int) {
	t := r.trio(r.cell(key))
	return t.node(0), t.node(1), t.node(2)
}

// AppendN appends to dst the numbers of the nodes that [Ring.LocateN] names. Up to 3 are looked up; for more, all nodes are
// ranked. Where dst has room it allocates nothing, but for n above 3 in a ring of more than 64 nodes.
func (r *Ring) AppendN(dst []int, key string, n int) []int {
	cell := r.cell(key)
	if t := r.trio(cell); n == 3 && t.full() {
		return append(dst, t.node(0), t.node(1), t.node(2))
	}
	return r.appendN(dst, cell, n)
}

// appendN is AppendN for any n.
func (r *Ring) appendN(dst []int, cell, n int) []int {
	if n <= 3 {
		t := r.trio(cell)
		for i := 0; i < n && t.node(i) >= 0; i++ {
			dst = append(dst, t.node(i))
		}
		return dst
	}
	// Where the placement is exact, the owner need not be the first by rank.
	owner := r.owners[cell]
	dst = append(dst, int(owner))
	var array [64]uint16
	for _, node := range r.rank(array[:0], cell, n) {
		if node != owner && n > 1 {
			dst = append(dst, int(node))
			n--
		}
	}
	return dst
}
