package prop

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/leanovate/gopter/prop"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/ring"
)

var ringCases = []conformance.Case{
	{
		ID: "PR-101", Name: "minimal-moves", Profile: conformance.Ring, Level: conformance.Core, Tier: conformance.Property,
		Requirement: "when a node comes, keys move to it alone, and when one goes, its own alone move: none between two nodes that stay",
		Run:         func(t *conformance.T) { minimalMoves(t, false) },
	},
	{
		ID: "PR-102", Name: "minimal-moves-by-weight", Profile: conformance.Ring, Level: conformance.Extended, Tier: conformance.Property,
		Features:    []conformance.Feature{Weights},
		Requirement: "the same of nodes with weights; and when a weight changes, keys move only to the node where it grew, or from it where it shrank",
		Run:         func(t *conformance.T) { minimalMoves(t, true) },
	},
	{
		ID: "PR-103", Name: "fair-part", Profile: conformance.Ring, Level: conformance.Core, Tier: conformance.Property,
		Requirement: "a node that comes takes a third to three times of its part of the keys, which is what must move, and no more than that moves",
		Run:         func(t *conformance.T) { fairPart(t, false) },
	},
	{
		ID: "PR-104", Name: "fair-part-by-weight", Profile: conformance.Ring, Level: conformance.Extended, Tier: conformance.Property,
		Features:    []conformance.Feature{Weights},
		Requirement: "the same of nodes with weights, whose parts are as their weights",
		Run:         func(t *conformance.T) { fairPart(t, true) },
	},
	{
		ID: "PR-105", Name: "any-order", Profile: conformance.Ring, Level: conformance.Core, Tier: conformance.Property,
		Requirement: "the same nodes give every key the same order of nodes, in whatever order they are given",
		Run:         anyOrder,
	},
	{
		ID: "PR-106", Name: "distinct-prefixes", Profile: conformance.Ring, Level: conformance.Core, Tier: conformance.Property,
		Requirement: "LocateN names distinct nodes of the ring, the owner first, all where n is greater, and its answer for n begins with that for n-1",
		Run:         distinctPrefixes,
	},
	{
		ID: "PR-107", Name: "down-and-back", Profile: conformance.Ring, Level: conformance.Core, Tier: conformance.Property,
		Requirement: "with nodes down a key's order is what it was without them; when they are back every order is what it was, whatever was down in between",
		Run:         downAndBack,
	},
}

// keysOf are keys of a try's own, so that tries together look at many.
func keysOf(m membership, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s:%d", m.node.Name, i)
	}
	return keys
}

func minimalMoves(t *conformance.T, weights bool) {
	tr := newTrial(t, fewer(10_000, 80), 1)
	tr.check(prop.ForAll(func(m membership) string {
		if tr.over() {
			return ""
		}
		tr.done.Add(1)
		before, after := t.Ring(m.before()), t.Ring(m.after())
		grows := m.change == joins || m.change == reweigh && m.weight >= m.node.Weight
		shrinks := m.change == leaves || m.change == reweigh && m.weight <= m.node.Weight
		for _, key := range keysOf(m, 100) {
			from, to := before.Locate(key), after.Locate(key)
			if from != to && !(grows && to == m.node.Name) && !(shrinks && from == m.node.Name) {
				return fmt.Sprintf("%q moved from %q to %q", key, from, to)
			}
		}
		return ""
	}, memberships(weights)))
}

// fairPart looks at so many keys, and at nodes and weights so few and near each other, that a fair ring is within the bounds but
// once in millions of runs, also one of 150 virtual nodes.
func fairPart(t *conformance.T, weights bool) {
	const keys = 4000
	tr := newTrial(t, fewer(400, 8), 1)
	others := 7
	if weights {
		others = 3
	}
	tr.check(prop.ForAll(func(m membership) string {
		if tr.over() {
			return ""
		}
		tr.done.Add(1)
		m.change = joins
		m.nodes = m.nodes[:min(len(m.nodes), others)]
		all := m.all()
		total := 0.0
		for i := range all {
			all[i].Weight = max(0.3, all[i].Weight) // and below 4
			total += all[i].Weight
		}
		before, after := t.Ring(all[:len(all)-1]), t.Ring(all)
		moved := 0
		for _, key := range keysOf(m, keys) {
			if before.Locate(key) != after.Locate(key) {
				moved++
			}
		}
		fair := all[len(all)-1].Weight / total * keys
		if got := float64(moved); got < fair/3 || got > 3*fair {
			return fmt.Sprintf("%d of %d keys moved where %.0f are the part of %s in %v", moved, keys, fair, named(all[len(all)-1]), all)
		}
		return ""
	}, memberships(weights)))
}

func anyOrder(t *conformance.T) {
	tr := newTrial(t, fewer(1000, 40), 1)
	tr.check(prop.ForAll(func(m membership) string {
		if tr.over() {
			return ""
		}
		tr.done.Add(1)
		nodes := m.all()
		given := t.Ring(nodes)
		slices.Reverse(nodes)
		reversed := t.Ring(nodes)
		mixer(m).Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		mixed := t.Ring(nodes)
		for _, key := range keysOf(m, 100) {
			want := given.LocateN(key, len(nodes))
			for _, r := range []conformance.Placement{reversed, mixed} {
				if got := r.LocateN(key, len(nodes)); !slices.Equal(got, want) || r.Locate(key) != given.Locate(key) {
					return fmt.Sprintf("the order of %q is %q, and with the nodes given in another order %q", key, want, got)
				}
			}
		}
		return ""
	}, memberships(false)))
}

// mixer is a source that a membership decides, so that it is tried alike again when it is shrunk.
func mixer(m membership) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(len(m.nodes)), 1))
}

func distinctPrefixes(t *conformance.T) {
	tr := newTrial(t, fewer(1000, 40), 1)
	tr.check(prop.ForAll(func(m membership) string {
		if tr.over() {
			return ""
		}
		tr.done.Add(1)
		nodes := m.all()
		r := t.Ring(nodes)
		for _, key := range keysOf(m, 50) {
			whole := r.LocateN(key, len(nodes)+1)
			sorted := slices.Compact(slices.Sorted(slices.Values(whole)))
			known := func(name string) bool {
				return slices.ContainsFunc(nodes, func(n ring.Node) bool { return n.Name == name })
			}
			if len(whole) != len(nodes) || len(sorted) != len(nodes) || slices.ContainsFunc(whole, func(name string) bool { return !known(name) }) {
				return fmt.Sprintf("LocateN(%q, %d) is %q, want each of the %d nodes once", key, len(nodes)+1, whole, len(nodes))
			}
			if whole[0] != r.Locate(key) {
				return fmt.Sprintf("the order of %q is %q, and its owner %q", key, whole, r.Locate(key))
			}
			for n := 1; n <= len(nodes); n++ {
				if got := r.LocateN(key, n); !slices.Equal(got, whole[:n]) {
					return fmt.Sprintf("LocateN(%q, %d) is %q, want the beginning of %q", key, n, got, whole)
				}
			}
		}
		return ""
	}, memberships(false)))
}

func downAndBack(t *conformance.T) {
	tr := newTrial(t, fewer(1000, 80), 1)
	tr.check(prop.ForAll(func(m membership) string {
		if tr.over() {
			return ""
		}
		tr.done.Add(1)
		nodes := m.all()
		whole := t.Ring(nodes)
		names := make([]string, len(nodes))
		for i, n := range nodes {
			names[i] = n.Name
		}
		mix := mixer(m)
		for range 3 {
			mix.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			down := names[:mix.IntN(len(names))]
			r := t.Ring(nodes, down...)
			for _, key := range keysOf(m, 50) {
				want := slices.DeleteFunc(whole.LocateN(key, len(nodes)), func(name string) bool { return slices.Contains(down, name) })
				if got := r.LocateN(key, len(nodes)); !slices.Equal(got, want) || r.Locate(key) != want[0] {
					return fmt.Sprintf("with %q down the order of %q is %q, its owner %q, want %q", down, key, got, r.Locate(key), want)
				}
			}
			if live, ok := r.(overlaid); ok {
				if err := restored(whole, live, names); err != "" {
					return err
				}
			}
		}
		return ""
	}, memberships(false)))
}

// overlaid is a ring that knows its overlay, such as package ring's, of which more can be asked: that it is restored bit for bit.
type overlaid interface {
	WithDown(names ...string) (*ring.Ring, error)
}

func restored(whole conformance.Placement, over overlaid, names []string) string {
	once, err := over.WithDown(names[1:]...)
	if err != nil {
		return err.Error()
	}
	back, err := once.WithDown()
	if err != nil {
		return err.Error()
	}
	change, err := ring.Diff(whole.(*ring.Ring), back)
	if err != nil {
		return err.Error()
	}
	if change.Moved != 0 || back.Fingerprint() != whole.(*ring.Ring).Fingerprint() || len(back.Down()) != 0 {
		return fmt.Sprintf("with all nodes back, %v of the keys are elsewhere", change.Moved)
	}
	return ""
}
