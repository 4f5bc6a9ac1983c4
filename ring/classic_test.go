package ring

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// referenceCircle is the ring as the textbook has it: all points in a list, looked through from the start.
func referenceCircle(nodes []Node, virtual int, key string) []string {
	type point struct {
		hash uint32
		name string
	}
	var points []point
	for _, n := range nodes {
		for i := range int(math.Ceil(n.Weight * float64(virtual))) {
			points = append(points, point{sum32(fmt.Sprintf("%s#%d", n.Name, i)), n.Name})
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		if a.hash != b.hash {
			return int(int64(a.hash)>>1-int64(b.hash)>>1)*2 + int(a.hash&1) - int(b.hash&1)
		}
		if a.name < b.name {
			return -1
		}
		return 1
	})
	at := slices.IndexFunc(points, func(p point) bool { return p.hash >= sum32(key) })
	if at < 0 {
		at = 0
	}
	var names []string
	for i := range points {
		if name := points[(at+i)%len(points)].name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func TestClassicAgainstReference(t *testing.T) {
	rnd := random(t)
	for range times(30) {
		nodes := randomNodes(rnd, 1+rnd.IntN(8))
		virtual := 1 + rnd.IntN(20)
		r := mustNew(t, nodes, &Options{Placement: Classic{VirtualNodes: virtual}})
		for range 200 {
			key := fmt.Sprintf("key-%d", rnd.Uint32())
			want := referenceCircle(nodes, virtual, key)
			if got := r.LocateN(key, len(nodes)); !slices.Equal(got, want) {
				t.Fatalf("%v, %d virtual nodes, key %q:\ngot  %v\nwant %v", nodes, virtual, key, got, want)
			}
		}
	}
}

// The figures that this ring is known by, with 150 virtual nodes and 100,000 keys.
func TestClassicIsTheKnownRing(t *testing.T) {
	three := mustNew(t, Nodes(numbered(3)...), &Options{Placement: Classic{}})
	four := must(t)(three.With(Node{"shard-4", 1}))
	counts, moved := make([]int, 3), 0
	for i := range 100_000 {
		key := fmt.Sprintf("key-%d", i)
		counts[three.Index(key)]++
		if three.Locate(key) != four.Locate(key) {
			moved++
		}
	}
	if want := []int{30957, 34371, 34672}; !slices.Equal(counts, want) || moved != 27210 {
		t.Errorf("got %v keys and %d moved, want %v and 27210", counts, moved, want)
	}
}

// Points of a circle that is searched by its top bits: hashes on both sides of every point, and of the ends.
func TestCircleBoundaries(t *testing.T) {
	for _, n := range []int{1, 2, 5, 40} {
		r := mustNew(t, Nodes(numbered(n)...), &Options{Placement: Classic{VirtualNodes: 7}})
		c := r.circle
		check := func(hash uint32) {
			want, _ := slices.BinarySearch(c.hashes, hash)
			if got := c.cell(hash); got != want%len(c.hashes) {
				t.Fatalf("%d nodes, hash %08x: got cell %d, want %d", n, hash, got, want%len(c.hashes))
			}
		}
		for _, h := range append(c.hashes, 0, math.MaxUint32) {
			check(h - 1)
			check(h)
			check(h + 1)
		}
	}
}

func TestClassicLongestWalk(t *testing.T) {
	r := mustNew(t, Nodes(numbered(200)...), &Options{Placement: Classic{}})
	over := must(t)(r.WithDown(numbered(199)...))
	if got := over.LocateN("key", 5); !slices.Equal(got, []string{"shard-200"}) {
		t.Errorf("got %v, want the one live node", got)
	}
}
