package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// What other rings get wrong, or got wrong once: each a test here.

// Where a node's points are hashes of its name with a number appended, point 1 of shard-1 and point 11 of shard- may
// be one: which node has it then depends on who came last.
func TestDefectNumberAppendedToTheName(t *testing.T) {
	nodes := Nodes("shard-", "shard-1", "shard-11", "shard-1#1", "shard-1#", "shard-1#11", "1", "11", "#1")
	for _, p := range []Placement{Table{}, Table{Exact: true}, Classic{}} {
		a := mustNew(t, nodes, &Options{Placement: p})
		reversed := slices.Clone(nodes)
		slices.Reverse(reversed)
		b := mustNew(t, reversed, &Options{Placement: p})
		if !slices.Equal(a.owners, b.owners) {
			t.Errorf("%+v: the order of nodes matters", p)
		}
		for i, share := range a.Shares() {
			if share < 0.05 {
				t.Errorf("%+v: node %q has %.3f of the keys, of 9 nodes", p, a.Name(i), share)
			}
		}
	}
	seen := map[string]string{}
	for _, n := range nodes {
		for i := range 200 {
			point := fmt.Sprintf("%s#%d", n.Name, i)
			if other, ok := seen[point]; ok {
				t.Fatalf("point %q belongs to %q and %q", point, other, n.Name)
			}
			seen[point] = n.Name
		}
	}
}

// Of 500 nodes with 150 points each, some two points have one 32-bit hash. The later node must neither take the point over nor
// take it along when it goes.
func TestDefectCollidingPoints(t *testing.T) {
	names := randomNames(rand.New(rand.NewPCG(1, 0)), 500)
	a := mustNew(t, Nodes(names...), &Options{Placement: Classic{}})
	collisions := 0
	for i := 1; i < len(a.circle.hashes); i++ {
		if a.circle.hashes[i] != a.circle.hashes[i-1] {
			continue
		}
		collisions++
		first, second := a.Name(int(a.circle.nodes[i-1])), a.Name(int(a.circle.nodes[i]))
		if first > second {
			t.Errorf("hash %08x: %q comes before %q", a.circle.hashes[i], first, second)
		}
		if collisions > 1 {
			continue
		}
		hash := a.circle.hashes[i]
		owner := func(r *Ring) string { return r.Name(int(r.owners[r.circle.cell(hash)])) }
		if got := owner(a); got != first {
			t.Errorf("the point is %q's, want %q's", got, first)
		}
		if got := owner(must(t)(a.Without(first))); got != second {
			t.Errorf("without %q the point is %q's, want %q's", first, got, second)
		}
		if got := owner(must(t)(a.Without(second))); got != first {
			t.Errorf("without %q the point is %q's, want %q's", second, got, first)
		}
		if got := owner(must(t)(a.WithDown(first))); got != second {
			t.Errorf("with %q down the point is %q's, want %q's", first, got, second)
		}
	}
	t.Logf("%d of %d points collide", collisions, len(a.circle.hashes))
	if collisions == 0 {
		t.Fatal("no two points of 75,000 collide: the test shows nothing")
	}
	total := 0.0
	for _, share := range a.Shares() {
		total += share
	}
	if math.Abs(total-1) > 1e-9 {
		t.Errorf("shares sum to %v, want 1: the arc of a second point has no length", total)
	}
	slices.Reverse(names)
	if b := mustNew(t, Nodes(names...), &Options{Placement: Classic{}}); !slices.Equal(a.owners, b.owners) {
		t.Errorf("%d collisions, and the order of nodes matters", collisions)
	}
}

// Two names with one hash would make one node of two: the later must be refused, and not silently own nothing.
func TestDefectNamesOfOneHash(t *testing.T) {
	// The words that sum64 multiplies are a name's halves, and this first half makes the product zero.
	zero := string(binary.LittleEndian.AppendUint64(nil, sqrt2))
	a, b := zero+"shard-01", zero+"shard-02"
	if sum64(a) != sum64(b) {
		t.Fatalf("%q and %q: hashes %x and %x, want one", a, b, sum64(a), sum64(b))
	}
	refused(t, Table{}, a, b)

	// Names of one FNV-1a have all their points in common. By the birthday, one of 65,536 is like an earlier one.
	seen := map[uint32]string{}
	for i := 0; ; i++ {
		name := fmt.Sprintf("%x", mix64(uint64(i)))
		if other, ok := seen[sum32(name)]; ok {
			refused(t, Classic{}, other, name)
			break
		}
		seen[sum32(name)] = name
	}
}

func refused(t *testing.T, p Placement, a, b string) {
	t.Helper()
	r, err := New(Nodes("other", b, a), &Options{Placement: p})
	var ne *NodeError
	if r != nil || !errors.Is(err, ErrCollision) || !errors.As(err, &ne) || ne.Name != max(a, b) {
		t.Errorf("%+v, nodes %q and %q: got %v, %v, want %v for the later", p, a, b, r, err, ErrCollision)
	}
	if _, err := New(Nodes("other", a), &Options{Placement: p}); err != nil {
		t.Errorf("%+v, %q alone: %v", p, a, err)
	}
}

// Taking out a name that is not there must not take out another, nor panic.
func TestDefectRemovingAnAbsentName(t *testing.T) {
	for _, p := range placements {
		r := mustNew(t, Nodes("b", "d"), &Options{Placement: p})
		owners := slices.Clone(r.owners)
		for _, name := range []string{"a", "c", "e", "", "b "} {
			if got, err := r.Without(name); !errors.Is(err, ErrUnknown) || got != nil {
				t.Errorf("%+v: Without(%q): got %v, %v, want %v", p, name, got, err, ErrUnknown)
			}
			if got, err := r.WithDown(name); !errors.Is(err, ErrUnknown) || got != nil {
				t.Errorf("%+v: WithDown(%q): got %v, %v, want %v", p, name, got, err, ErrUnknown)
			}
		}
		if !slices.Equal(r.owners, owners) || r.Len() != 2 {
			t.Errorf("%+v: the ring changed", p)
		}
	}
}

// A small weight must not be rounded to nothing: the node has its part, or is refused.
func TestDefectSmallWeightGetsNothing(t *testing.T) {
	buckets := 1 << 20
	if raceEnabled {
		buckets = 1 << 18
	}
	for _, w := range []float64{0.5, 0.1, 0.01, 0.005, 0.001, 1e-4, 1e-5, 1e-6, 1e-9} {
		nodes := append(Nodes(numbered(5)...), Node{"small", w})
		for _, p := range []Placement{Table{}, Table{Exact: true}, Table{Buckets: buckets}, Classic{}, Classic{VirtualNodes: 10}} {
			r, err := New(nodes, &Options{Placement: p})
			if err != nil {
				if !errors.Is(err, ErrWeight) {
					t.Errorf("%+v, weight %v: got %v, want %v", p, w, err, ErrWeight)
				}
				continue
			}
			i, _ := r.Find("small")
			if share := r.Shares()[i]; share == 0 {
				t.Errorf("%+v, weight %v: taken, and given nothing", p, w)
			}
		}
	}
}

// More nodes than virtual nodes, or names beyond what an index holds, must be an error and not a panic.
func TestDefectTooManyNodes(t *testing.T) {
	for _, n := range []int{100, 1023, 1024, 5000} {
		for _, p := range []Placement{Table{}, Classic{}, Classic{VirtualNodes: 1}, Table{Buckets: 1 << 14}} {
			r, err := New(Nodes(numbered(n)...), &Options{Placement: p})
			if err != nil {
				continue
			}
			if got := len(r.LocateN("key", n)); got != n {
				t.Errorf("%+v: LocateN names %d of %d nodes", p, got, n)
			}
		}
	}
}

// A rebalance that runs while keys are looked up (github.com/redis/go-redis/issues/2283): to be run with the race detector.
func TestDefectRaceOfRebalanceAndLookup(t *testing.T) {
	live := NewLive(mustNew(t, Nodes(numbered(3)...), &Options{Placement: Table{Buckets: 1 << 14}}))
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Sprintf("key-%d", i)
				r := live.Snapshot()
				order := r.LocateN(key, 3)
				if r.Locate(key) != order[0] {
					t.Errorf("one snapshot, two owners of %q", key)
					return
				}
				live.Locate(key)
			}
		})
	}
	for i := range 40 {
		_, err := live.Update(func(r *Ring) (*Ring, error) {
			switch i % 4 {
			case 0:
				return r.With(Node{"shard-4", 1})
			case 1:
				return r.WithDown("shard-1")
			case 2:
				return r.WithDown()
			}
			return r.Without("shard-4")
		})
		if err != nil {
			t.Error(err)
		}
	}
	close(stop)
	readers.Wait()
}

// A snapshot of another membership must not make two clients disagree for good: both learn of failures in different orders.
func TestDefectOrderOfFailures(t *testing.T) {
	a := mustNew(t, Nodes(numbered(8)...), nil)
	b := must(t)(must(t)(mustNew(t, Nodes(numbered(7)...), nil).WithDown("shard-3")).With(Node{"shard-8", 1}))
	a = must(t)(must(t)(a.WithDown("shard-5", "shard-3")).WithDown("shard-3"))
	c, err := Diff(a, b)
	if err != nil || c.Moved != 0 {
		t.Errorf("two clients that see shard-3 down disagree on %v of the keys, %v", c.Moved, err)
	}
}
