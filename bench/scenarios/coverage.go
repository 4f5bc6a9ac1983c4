package scenarios

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/slotmap"
)

// Counters of the coverage scenario: shares of 1.
const (
	// SameNode is how much of the keyspace has a copy of the set on its own node.
	SameNode = "same_node"

	// SameSlot is how much of it has one in its own slot. Only there is SINTER legal: the server looks at slots, never
	// at nodes, so the rest of SameNode is refused with CROSSSLOT like everything else.
	SameSlot = "same_slot"

	// Lost is the share of reshards after which a master that serves slots holds no copy at all, until the set is
	// published again for the new layout. LostByAdd, LostByRemove and LostByMove are the same by sort of reshard.
	Lost         = "lost"
	LostByAdd    = "lost_by_add"
	LostByRemove = "lost_by_remove"
	LostByMove   = "lost_by_move"
)

func coverageParts() []Part {
	return []Part{{
		Name: "coverage", Doc: fmt.Sprintf("%d random reshards of a cluster of %d to %d masters", reshards, fewestMasters, mostMasters),
		takes: time.Second, run: coverage,
	}}
}

const (
	reshards      = 1000
	fewestMasters = 3
	mostMasters   = 12
)

// placement says in which slots a set has copies, when the cluster is laid out like this.
type placement struct {
	name   string
	copies func(l *layout, rng *rand.Rand) []uint16
}

func placements() []placement {
	everywhere := make([]uint16, slotmap.Slots)
	for slot := range everywhere {
		everywhere[slot] = uint16(slot)
	}
	return []placement{
		{"one-key", func(_ *layout, rng *rand.Rand) []uint16 { return []uint16{uint16(rng.IntN(slotmap.Slots))} }},
		{"one-per-node", (*layout).onePerNode},
		{"one-per-slot", func(*layout, *rand.Rand) []uint16 { return everywhere }},
	}
}

// coverage plays with no server: 1000 times, the copies are placed for the layout as it is, what they cover is counted,
// the cluster is resharded in a random way, and it is counted what they cover then.
//
// A reshard is what operators do, each sort with the same chance. Add: a new master takes an even share, random slots,
// from all others. Remove: a random master's slots are dealt out evenly. Move: a random part of one master's slots goes
// to another one. With 3 masters none is removed, with 12 none is added; a move takes its place. The layout goes on from
// reshard to reshard; it begins with 3 masters and even ranges.
func coverage(ctx context.Context, s *stage) (*bench.Result, error) {
	started := time.Now()
	s.progressOf(0, "")
	rng := rand.New(rand.NewPCG(s.opts.Seed, 3))
	l := evenLayout(fewestMasters)
	all := placements()
	tallies := make([]tally, len(all))
	copies := make([][]uint16, len(all))
	for n := range reshards {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for i, p := range all {
			copies[i] = p.copies(l, rng)
			tallies[i].before(l, copies[i])
		}
		what := l.reshard(rng)
		for i := range all {
			tallies[i].after(what, l, copies[i])
		}
		s.progressOf(float64(n+1)/reshards, "a cluster")
	}
	res := &bench.Result{
		Scenario: s.part.Name, Doc: s.part.Doc, Started: started, Measured: started, Ended: time.Now(),
		Settings: bench.Settings{Seed: s.opts.Seed}, Intervals: []bench.Interval{},
	}
	for i, p := range all {
		res.Variants = append(res.Variants, bench.VariantResult{Name: p.name, Kinds: []bench.KindResult{}, Counters: tallies[i].shares()})
	}
	return res, nil
}

// tally counts what a placement covered.
type tally struct {
	node, slot float64 // sums of shares
	done, lost map[reshard]int
}

func (t *tally) before(l *layout, copies []uint16) {
	has := l.holders(copies)
	covered := 0
	for m, slots := range l.slots {
		if has[m] {
			covered += len(slots)
		}
	}
	t.node += float64(covered) / slotmap.Slots
	t.slot += float64(len(copies)) / slotmap.Slots
}

func (t *tally) after(what reshard, l *layout, copies []uint16) {
	if t.done == nil {
		t.done, t.lost = map[reshard]int{}, map[reshard]int{}
	}
	t.done[what]++
	has := l.holders(copies)
	for m, slots := range l.slots {
		if len(slots) > 0 && !has[m] {
			t.lost[what]++
			return
		}
	}
}

func (t *tally) shares() map[string]float64 {
	share := func(kinds ...reshard) float64 {
		lost, done := 0, 0
		for _, k := range kinds {
			lost, done = lost+t.lost[k], done+t.done[k]
		}
		return float64(lost) / float64(max(done, 1))
	}
	return map[string]float64{
		SameNode: t.node / reshards, SameSlot: t.slot / reshards,
		Lost: share(addMaster, removeMaster, moveSlots), LostByAdd: share(addMaster), LostByRemove: share(removeMaster), LostByMove: share(moveSlots),
	}
}
