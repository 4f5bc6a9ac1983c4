package ring

import (
	"fmt"
	"testing"
)

func TestGroup(t *testing.T) {
	for _, p := range placements {
		r := mustNew(t, Nodes(numbered(5)...), &Options{Placement: p})
		for _, n := range []int{0, 1, 2, 100} {
			keys := make([]string, n)
			for i := range keys {
				keys[i] = fmt.Sprintf("key-%d", i%70) // some twice
			}
			seen := make([]bool, n)
			last := -1
			for _, g := range r.Group(keys) {
				if g.Node <= last || g.Name != r.Name(g.Node) || len(g.Keys) == 0 {
					t.Fatalf("%+v, %d keys: group %+v after node %d", p, n, g, last)
				}
				last = g.Node
				before := -1
				for _, at := range g.Keys {
					if at <= before || seen[at] || r.Locate(keys[at]) != g.Name {
						t.Fatalf("%+v, %d keys: position %d in the group of %s, key %q of %s", p, n, at, g.Name, keys[at], r.Locate(keys[at]))
					}
					before, seen[at] = at, true
				}
				// A caller may append to what is his, and not to another group.
				_ = append(g.Keys, -1)
			}
			for at, ok := range seen {
				if !ok {
					t.Errorf("%+v, %d keys: position %d in no group", p, n, at)
				}
			}
		}
	}
}
