package replset

import (
	"fmt"
	"slices"

	"github.com/shardkit/shardkit/slotmap"
)

// slotSet is the slots that hold replicas.
type slotSet struct {
	list []uint16 // in order
	has  [slotmap.Slots / 64]uint64
}

// newSlotSet takes all slots where some is nil, else those and the home slot.
func newSlotSet(some []uint16, home uint16) (*slotSet, error) {
	s := &slotSet{}
	add := func(slot uint16) { s.has[slot/64] |= 1 << (slot % 64) }
	for _, slot := range some {
		if slot >= slotmap.Slots {
			return nil, fmt.Errorf("replset: New: Options.Slots holds %d: slots end at %d", slot, slotmap.Slots-1)
		}
		add(slot)
	}
	add(home)
	for slot := range uint16(slotmap.Slots) {
		if some == nil {
			add(slot)
		}
		if s.contains(slot) {
			s.list = append(s.list, slot)
		}
	}
	return s, nil
}

func (s *slotSet) contains(slot uint16) bool { return s.has[slot/64]&(1<<(slot%64)) != 0 }

// but returns all slots except one.
func (s *slotSet) but(slot uint16) []uint16 {
	i, _ := slices.BinarySearch(s.list, slot)
	return slices.Delete(slices.Clone(s.list), i, i+1)
}
