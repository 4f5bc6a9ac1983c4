package tiercache

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shardkit/shardkit/ring"
)

// TestRoutes: whatever is out, a key goes to the first live shard of its walk,
// past exactly those before it, and keys of one group have one route.
func TestRoutes(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	for _, placement := range []ring.Placement{ring.Table{}, ring.Table{Exact: true}, ring.Classic{}} {
		whole, err := ring.New(ring.Nodes(names...), &ring.Options{Placement: placement})
		if err != nil {
			t.Fatal(err)
		}
		rs := &routing{whole: whole}
		for i := range whole.Len() {
			rs.remotes = append(rs.remotes, &remote{name: whole.Name(i)})
		}
		keys, walks := make([]string, 100), make([][]string, 100)
		for i := range keys {
			keys[i] = fmt.Sprint("k", i)
			walks[i] = whole.LocateN(keys[i], len(names))
		}
		for out := range 1<<len(names) - 1 {
			var down []string
			for i, name := range names {
				if out>>i&1 == 1 {
					down = append(down, name)
				}
			}
			if rs.live, err = whole.WithDown(down...); err != nil {
				t.Fatal(err)
			}
			rs.out = len(down) > 0
			grouped := 0
			for _, g := range rs.group(keys) {
				grouped += len(g.keys)
				for _, at := range g.keys {
					rt := rs.route(keys[at])
					walk := walks[at]
					n := slices.IndexFunc(walk, func(name string) bool { return !slices.Contains(down, name) })
					var ahead []string
					if rt.stand != nil {
						for _, r := range rt.stand.ahead {
							ahead = append(ahead, r.name)
						}
					}
					if rt.name != walk[n] || !slices.Equal(ahead, walk[:n]) || (rt.stand == nil) != (n == 0) {
						t.Fatalf("%T, down %v, %s: got %s past %v, want %s past %v", placement, down, keys[at], rt.name, ahead, walk[n], walk[:n])
					}
					if g.name != rt.name || g.stand.names() != rt.stand.names() {
						t.Fatalf("%T, down %v, %s: in the group of %s past %q", placement, down, keys[at], g.name, g.stand.names())
					}
				}
			}
			if grouped != len(keys) {
				t.Fatalf("%d of %d keys are in a group", grouped, len(keys))
			}
		}
	}
}
