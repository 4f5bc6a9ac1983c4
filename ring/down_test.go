package ring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

var placements = []Placement{Table{Buckets: 1 << 14}, Table{Buckets: 1 << 14, Exact: true}, Classic{VirtualNodes: 40}}

// randomDown returns the names of some of the ring's nodes, but not of all.
func randomDown(rnd *rand.Rand, r *Ring) []string {
	names := make([]string, r.Len())
	for i := range names {
		names[i] = r.Name(i)
	}
	rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:rnd.IntN(len(names))]
}

func TestDownIsRestoredBitForBit(t *testing.T) {
	rnd := random(t)
	for _, p := range placements {
		for range times(50) {
			nodes := randomNodes(rnd, 2+rnd.IntN(9))
			r := mustNew(t, nodes, &Options{Placement: p})
			over := r
			for range 5 {
				over = must(t)(over.WithDown(randomDown(rnd, r)...))
			}
			over = must(t)(over.WithDown())
			fresh := mustNew(t, nodes, &Options{Placement: p})
			if over != r || !slices.Equal(over.owners, fresh.owners) || over.Down() != nil || over.Fingerprint() != fresh.Fingerprint() {
				t.Fatalf("%+v, %v: the restored ring is another", p, nodes)
			}
		}
	}
}

// What was down before leaves no trace: an overlay laid on overlays is the one laid on the whole.
func TestDownDoesNotDependOnHistory(t *testing.T) {
	rnd := random(t)
	for _, p := range placements {
		for range times(50) {
			r := mustNew(t, randomNodes(rnd, 2+rnd.IntN(9)), &Options{Placement: p})
			a, b := r, r
			for range 3 {
				a = must(t)(a.WithDown(randomDown(rnd, r)...))
				b = must(t)(b.WithDown(randomDown(rnd, r)...))
			}
			names := randomDown(rnd, r)
			a = must(t)(a.WithDown(names...))
			slices.Reverse(names)
			b = must(t)(b.WithDown(append(names, names...)...))
			if !slices.Equal(a.owners, b.owners) || !slices.Equal(a.Down(), b.Down()) {
				t.Fatalf("%+v: with %v down, two histories end in two tables", p, names)
			}
		}
	}
}

// A key of a node that is down goes to the next live node of its own order; every other key stays.
func TestDownFollowsEachKeysOrder(t *testing.T) {
	rnd := random(t)
	for _, p := range placements {
		for range times(30) {
			r := mustNew(t, randomNodes(rnd, 2+rnd.IntN(9)), &Options{Placement: p})
			over := must(t)(r.WithDown(randomDown(rnd, r)...))
			if over.Fingerprint() != r.Fingerprint() {
				t.Fatal("the overlay changed the fingerprint")
			}
			for range 500 {
				key := fmt.Sprintf("key-%d", rnd.Uint32())
				var live []string
				for _, name := range r.LocateN(key, r.Len()) {
					if i, _ := over.Find(name); over.IsLive(i) {
						live = append(live, name)
					}
				}
				if got := over.LocateN(key, r.Len()); !slices.Equal(got, live) {
					t.Fatalf("%+v, %v down, key %q: got %v, want %v", p, over.Down(), key, got, live)
				}
				if got := over.Locate(key); got != live[0] {
					t.Fatalf("%+v, %v down, key %q: owner %q, want %q", p, over.Down(), key, got, live[0])
				}
			}
		}
	}
}

func TestFailoverOwnerIsTheSecondNode(t *testing.T) {
	for _, p := range placements {
		r := mustNew(t, Nodes(numbered(5)...), &Options{Placement: p})
		for _, name := range numbered(5) {
			over := must(t)(r.WithDown(name))
			for i := range 2000 {
				key := fmt.Sprintf("key-%d", i)
				order := r.LocateN(key, 2)
				want := order[0]
				if want == name {
					want = order[1]
				}
				if got := over.Locate(key); got != want {
					t.Fatalf("%+v, %s down, key %q: got %q, want %q of %v", p, name, key, got, want, order)
				}
			}
		}
	}
}

// A node's keys go to all others when it is down, not to one.
func TestDownSpreadsTheKeys(t *testing.T) {
	r := mustNew(t, Nodes(numbered(10)...), nil)
	before, after := r.Shares(), must(t)(r.WithDown("shard-1")).Shares()
	gone := before[0]
	for i := 1; i < 10; i++ {
		if part := (after[i] - before[i]) / gone; part < 0.08 || part > 0.15 {
			t.Errorf("%s took %.3f of the keys of shard-1, want about 1/9", r.Name(i), part)
		}
	}
	if after[0] != 0 {
		t.Errorf("shard-1 is down and has %v of the keys", after[0])
	}
}

func TestMembershipKeepsTheOverlay(t *testing.T) {
	for _, p := range placements {
		r := mustNew(t, Nodes("a", "b", "c"), &Options{Placement: p})
		over := must(t)(r.WithDown("b"))
		for _, c := range []struct {
			name string
			got  *Ring
			want *Ring
		}{
			{"With", must(t)(over.With(Node{"d", 1})), must(t)(must(t)(r.With(Node{"d", 1})).WithDown("b"))},
			{"Without a live one", must(t)(over.Without("a")), must(t)(must(t)(r.Without("a")).WithDown("b"))},
			{"Without the one down", must(t)(over.Without("b")), must(t)(r.Without("b"))},
			{"WithWeight", must(t)(over.WithWeight("b", 2)), must(t)(must(t)(r.WithWeight("b", 2)).WithDown("b"))},
		} {
			if !slices.Equal(c.got.Down(), c.want.Down()) || !slices.Equal(c.got.owners, c.want.owners) || c.got.Fingerprint() != c.want.Fingerprint() {
				t.Errorf("%+v: %s: down %v, want %v; or the tables differ", p, c.name, c.got.Down(), c.want.Down())
			}
		}
	}
}
