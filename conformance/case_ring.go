package conformance

import (
	"fmt"
	"slices"

	"github.com/shardkit/shardkit/ring"
)

var ringCases = []Case{
	{
		ID: "RG-001", Name: "order-does-not-matter", Profile: Ring, Level: Core, Tier: Contract,
		Requirement: "the same nodes place every key alike, in whatever order they are given",
		Run: func(t *T) {
			nodes := ring.Nodes(nodeNames(10)...)
			a := t.Ring(nodes)
			for range 5 {
				mixed := slices.Clone(nodes)
				t.Rand().Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
				b := t.Ring(mixed)
				for i := range 1000 {
					if key := fmt.Sprint("key-", i); a.Locate(key) != b.Locate(key) {
						t.Fatalf("%q is on %s, and on %s with the nodes in another order", key, a.Locate(key), b.Locate(key))
					}
				}
			}
		},
	},
	{
		ID: "RG-002", Name: "nodes-are-distinct", Profile: Ring, Level: Core, Tier: Contract,
		Requirement: "the first n nodes of a key are distinct nodes of the ring, the owner first, and all of them where n is greater",
		Run: func(t *T) {
			names := nodeNames(7)
			r := t.Ring(ring.Nodes(names...))
			for i := range 1000 {
				key := fmt.Sprint("key-", i)
				for n := 1; n <= 9; n++ {
					got := r.LocateN(key, n)
					sorted := slices.Sorted(slices.Values(got))
					if len(got) != min(n, 7) || got[0] != r.Locate(key) || len(slices.Compact(sorted)) != len(got) ||
						slices.ContainsFunc(got, func(name string) bool { return !slices.Contains(names, name) }) {
						t.Fatalf("LocateN(%q, %d) is %q; the owner is %s", key, n, got, r.Locate(key))
					}
				}
			}
		},
	},
	{
		ID: "RG-003", Name: "down-is-an-overlay", Profile: Ring, Level: Core, Tier: Contract,
		Requirement: "when a node goes down only its own keys move, each to the next live node of its own order",
		Run: func(t *T) {
			nodes := ring.Nodes(nodeNames(5)...)
			whole := t.Ring(nodes)
			for _, down := range nodes {
				r := t.Ring(nodes, down.Name)
				for i := range 1000 {
					key := fmt.Sprint("key-", i)
					order := whole.LocateN(key, 2)
					want := order[0]
					if want == down.Name {
						want = order[1]
					}
					if got := r.Locate(key); got != want {
						t.Fatalf("with %s down %q is on %s, want %s: its order is %q", down.Name, key, got, want, order)
					}
				}
			}
		},
	},
	{
		ID: "RG-004", Name: "no-key-moves-between-others", Profile: Ring, Level: Core, Tier: Property,
		Requirement: "when a node joins, keys move to it alone: none moves between two nodes that stay",
		Run: func(t *T) {
			rnd := t.Rand()
			for range 10 {
				names := make([]string, 2+rnd.IntN(10))
				for i := range names {
					names[i] = fmt.Sprintf("node-%x", rnd.Uint64())
				}
				before, after := t.Ring(ring.Nodes(names[1:]...)), t.Ring(ring.Nodes(names...))
				for i := range 2000 {
					key := fmt.Sprint("key-", i)
					if from, to := before.Locate(key), after.Locate(key); from != to && to != names[0] {
						t.Fatalf("when %s joined %d others, %q moved from %s to %s", names[0], len(names)-1, key, from, to)
					}
				}
			}
		},
	},
}

func nodeNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint("shard-", i+1)
	}
	return names
}
