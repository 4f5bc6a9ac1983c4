package scenarios

import (
	"math/rand/v2"

	"github.com/shardkit/shardkit/slotmap"
)

// layout is which master owns which slots.
type layout struct {
	slots [][]uint16 // by master, each at least one
	owner [slotmap.Slots]uint8
}

func newLayout(slots ...[]uint16) *layout {
	l := &layout{}
	for _, own := range slots {
		l.slots = append(l.slots, nil)
		l.give(len(l.slots)-1, own...)
	}
	return l
}

// evenLayout gives n masters a range each, as a new cluster has them.
func evenLayout(n int) *layout {
	l := &layout{slots: make([][]uint16, n)}
	for slot := range slotmap.Slots {
		l.give(slot*n/slotmap.Slots, uint16(slot))
	}
	return l
}

// holders tells for each master whether it has one of the copies.
func (l *layout) holders(copies []uint16) []bool {
	has, without := make([]bool, len(l.slots)), len(l.slots)
	for _, slot := range copies {
		if m := l.owner[slot]; !has[m] {
			has[m] = true
			if without--; without == 0 {
				break
			}
		}
	}
	return has
}

// onePerNode picks one of each master's slots.
func (l *layout) onePerNode(rng *rand.Rand) []uint16 {
	var slots []uint16
	for _, own := range l.slots {
		slots = append(slots, own[rng.IntN(len(own))])
	}
	return slots
}

// reshard is a sort of change to a layout.
type reshard int

const (
	addMaster reshard = iota
	removeMaster
	moveSlots
)

// reshard changes the layout at random, and says how.
func (l *layout) reshard(rng *rand.Rand) reshard {
	what := reshard(rng.IntN(3))
	switch {
	case what == addMaster && len(l.slots) < mostMasters:
		l.add(rng)
	case what == removeMaster && len(l.slots) > fewestMasters:
		l.remove(rng)
	default:
		what = moveSlots
		l.move(rng)
	}
	return what
}

func (l *layout) add(rng *rand.Rand) {
	var own []uint16
	n := len(l.slots) + 1
	for m := range l.slots {
		own = append(own, l.take(rng, m, len(l.slots[m])/n)...)
	}
	if len(own) == 0 { // masters of a few slots each have no share to give
		own = l.take(rng, l.largest(), 1)
	}
	l.slots = append(l.slots, nil)
	l.give(n-1, own...)
}

func (l *layout) remove(rng *rand.Rand) {
	gone, last := rng.IntN(len(l.slots)), len(l.slots)-1
	orphans := l.slots[gone]
	l.slots[gone] = nil
	if gone != last { // the last master takes the number of the one that is gone
		l.give(gone, l.slots[last]...)
	}
	l.slots = l.slots[:last]
	rng.Shuffle(len(orphans), func(i, j int) { orphans[i], orphans[j] = orphans[j], orphans[i] })
	for i, slot := range orphans {
		l.give(i%last, slot)
	}
}

// move leaves the source at least one slot: a master without any is a removed one.
func (l *layout) move(rng *rand.Rand) {
	from := rng.IntN(len(l.slots))
	if len(l.slots[from]) == 1 {
		from = l.largest()
	}
	to := (from + 1 + rng.IntN(len(l.slots)-1)) % len(l.slots)
	l.give(to, l.take(rng, from, 1+rng.IntN(len(l.slots[from])-1))...)
}

// take removes n random slots from a master.
func (l *layout) take(rng *rand.Rand, m, n int) []uint16 {
	own := l.slots[m]
	for i := range n { // a shuffle, as far as it is needed
		j := i + rng.IntN(len(own)-i)
		own[i], own[j] = own[j], own[i]
	}
	l.slots[m] = append([]uint16{}, own[n:]...)
	return own[:n]
}

func (l *layout) give(m int, slots ...uint16) {
	l.slots[m] = append(l.slots[m], slots...)
	for _, slot := range slots {
		l.owner[slot] = uint8(m)
	}
}

func (l *layout) largest() int {
	most := 0
	for m := range l.slots {
		if len(l.slots[m]) > len(l.slots[most]) {
			most = m
		}
	}
	return most
}
