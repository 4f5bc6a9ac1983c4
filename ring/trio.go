package ring

import "sync/atomic"

// trio is the first three nodes of a cell, each as its number plus one in indexBits, the owner lowest: 0 where there is no
// such node. A trio that was not found yet is 0 as a whole, since every cell has an owner.
type trio uint32

// node returns the number of the owner (0), the second or the third node; -1 where there is none.
func (t trio) node(i int) int { return int(t>>(i*indexBits)&indexMask) - 1 }

func (t trio) full() bool { return t>>(2*indexBits) != 0 }

// trio looks up the cell's first nodes. Most cells are never asked for theirs, and finding all would take longer than the
// owners: so each is found once it is asked for. Two goroutines may do so at the same time, and store the same.
func (r *Ring) trio(cell int) trio {
	if t := atomic.LoadUint32(&r.trios[cell]); t != 0 {
		return trio(t)
	}
	return r.findTrio(cell)
}

func (r *Ring) findTrio(cell int) trio {
	var array [3]uint16
	order := array[:0]
	if r.circle != nil {
		order = r.circle.rank(order, cell, r.live, 3)
	} else {
		order = r.table.nearest(order, cell, r.live)
	}
	// Where the placement is exact, the owner need not be the first by rank.
	owner := r.owners[cell]
	t, shift := trio(owner+1), indexBits
	for _, node := range order {
		if node != owner && shift < 3*indexBits {
			t |= trio(node+1) << shift
			shift += indexBits
		}
	}
	atomic.StoreUint32(&r.trios[cell], uint32(t))
	return t
}
