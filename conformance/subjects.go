package conformance

import (
	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/slotmap"
)

// SlotFuncs are the slot functions under test, in the shape of package slotmap's.
type SlotFuncs struct {
	Slot   func(key string) uint16       // the key's slot
	Tag    func(slot uint16) string      // the smallest decimal integer that hashes to the slot
	KeyFor func(name, key string) string // name's replica in key's slot
}

var shardkitSlots = &SlotFuncs{Slot: slotmap.Slot, Tag: slotmap.Tag, KeyFor: slotmap.KeyFor}

// A Placement says which nodes hold a key, by name.
type Placement interface {
	// Locate names the key's owner.
	Locate(key string) string

	// LocateN names the first n live nodes of the key's order, the owner first, or all where fewer are live.
	LocateN(key string, n int) []string
}

// ShardkitRing returns package ring's placement with the options, as Target.Ring wants it.
func ShardkitRing(o *ring.Options) func(nodes []ring.Node, down ...string) (Placement, error) {
	return func(nodes []ring.Node, down ...string) (Placement, error) {
		r, err := ring.New(nodes, o)
		if err != nil {
			return nil, err
		}
		return r.WithDown(down...)
	}
}
