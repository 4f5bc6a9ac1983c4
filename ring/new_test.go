package ring

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestNewRefuses(t *testing.T) {
	weigh := func(w float64) []Node { return []Node{{"a", 1}, {"b", w}, {"c", 1}} }
	classic := func(n int) *Options { return &Options{Placement: Classic{VirtualNodes: n}} }
	table := func(n int) *Options { return &Options{Placement: Table{Buckets: n}} }
	abc := Nodes("a", "b", "c")
	for _, c := range []struct {
		name  string
		nodes []Node
		opts  *Options
		want  error  // found by errors.Is
		node  string // named by the NodeError
	}{
		{"no nodes", nil, nil, ErrNoNodes, ""},
		{"an empty name", Nodes("a", ""), nil, nil, ""},
		{"a name twice", Nodes("b", "a", "b"), nil, ErrDuplicate, "b"},
		{"a name twice, classic", Nodes("b", "a", "b"), classic(0), ErrDuplicate, "b"},
		{"too many names", Nodes(numbered(1024)...), nil, nil, ""},
		{"weight zero", weigh(0), nil, ErrWeight, "b"},
		{"weight unset", []Node{{Name: "a"}}, nil, ErrWeight, "a"},
		{"weight negative", weigh(-1), nil, ErrWeight, "b"},
		{"weight not a number", weigh(math.NaN()), nil, ErrWeight, "b"},
		{"weight infinite", weigh(math.Inf(1)), nil, ErrWeight, "b"},
		{"weight negative infinite", weigh(math.Inf(-1)), nil, ErrWeight, "b"},
		{"weight denormal", weigh(5e-324), nil, ErrWeight, "b"},
		{"weight zero, classic", weigh(0), classic(0), ErrWeight, "b"},
		{"weight not a number, classic", weigh(math.NaN()), classic(0), ErrWeight, "b"},
		{"a share below 32 buckets", weigh(0.0001), nil, ErrWeight, "b"},
		{"1000 nodes on 1<<14 buckets", Nodes(numbered(1000)...), table(1 << 14), ErrWeight, "shard-1"},
		{"negative buckets", abc, table(-1 << 16), nil, ""},
		{"one bucket", abc, table(1), nil, ""},
		{"too few buckets", abc, table(1 << 13), nil, ""},
		{"too many buckets", abc, table(1 << 21), nil, ""},
		{"buckets not a power of two", abc, table(100_000), nil, ""},
		{"the least number there is", abc, table(math.MinInt), nil, ""},
		{"negative virtual nodes", abc, classic(-1), nil, ""},
		{"too many virtual nodes", abc, classic(1 << 20), nil, ""},
		{"too many virtual nodes by weight", []Node{{"a", 1e9}}, classic(150), nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := New(c.nodes, c.opts)
			if err == nil || r != nil {
				t.Fatalf("got %v, %v, want an error", r, err)
			}
			if !strings.HasPrefix(err.Error(), "ring: ") {
				t.Errorf("error does not name the package: %v", err)
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			var ne *NodeError
			if errors.As(err, &ne) != (c.node != "") || c.node != "" && ne.Name != c.node {
				t.Errorf("got %#v, want a NodeError for %q", err, c.node)
			}
		})
	}
}

func TestNewAccepts(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes []Node
		opts  *Options
	}{
		{"one node", Nodes("a"), nil},
		{"one node, classic with one point", Nodes("a"), &Options{Placement: Classic{VirtualNodes: 1}}},
		{"the most nodes", Nodes(numbered(1023)...), nil},
		{"the most nodes, classic", Nodes(numbered(1023)...), &Options{Placement: Classic{}}},
		{"the least weight", []Node{{"a", minWeight}}, nil},
		{"the greatest weight", []Node{{"a", maxWeight}}, nil},
		{"binary names", Nodes("\x00", "\x00\x00", "\xff"), nil},
		{"long names", Nodes(strings.Repeat("a", 1000), strings.Repeat("a", 1001)), nil},
		{"the fewest buckets", Nodes("a", "b"), &Options{Placement: Table{Buckets: 1 << 14}}},
		{"the most buckets", Nodes("a", "b"), &Options{Placement: Table{Buckets: 1 << 20}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustNew(t, c.nodes, c.opts)
			for i, share := range r.Shares() {
				if share == 0 {
					t.Errorf("node %q owns nothing", r.Name(i))
				}
			}
			for _, key := range []string{"", "a", "key"} {
				if _, ok := r.Find(r.Locate(key)); !ok {
					t.Errorf("Locate(%q) = %q, which is no node", key, r.Locate(key))
				}
			}
		})
	}
}

// A ring belongs to itself: what it was made of, and what it hands out, may be changed by the caller.
func TestNewKeepsNothing(t *testing.T) {
	nodes := Nodes("c", "a", "b")
	r := mustNew(t, nodes, nil)
	before := r.Fingerprint()
	nodes[0].Name = "z"
	r.Nodes()[0].Name = "z"
	if got := r.Fingerprint(); got != before || r.Name(0) != "a" {
		t.Errorf("the ring changed with the caller's slice: fingerprint %x, was %x; node 0 is %q", got, before, r.Name(0))
	}
}

// An operation that is refused leaves the ring as it was.
func TestRefusedChangesLeaveTheRing(t *testing.T) {
	for _, p := range []Placement{Table{}, Table{Exact: true}, Classic{}} {
		t.Run(fmt.Sprintf("%+v", p), func(t *testing.T) {
			r := mustNew(t, Nodes("a", "b", "c"), &Options{Placement: p})
			down := must(t)(r.WithDown("c"))
			owners, downOwners := slices.Clone(r.owners), slices.Clone(down.owners)
			single := mustNew(t, Nodes("a"), &Options{Placement: p})
			for _, c := range []struct {
				name string
				call func() (*Ring, error)
				want error
			}{
				{"Without an unknown name", func() (*Ring, error) { return r.Without("d") }, ErrUnknown},
				{"Without an empty name", func() (*Ring, error) { return r.Without("") }, ErrUnknown},
				{"Without the last node", func() (*Ring, error) { return single.Without("a") }, ErrNoNodes},
				{"Without the last live node", func() (*Ring, error) {
					two := must(t)(down.Without("a"))
					return two.Without("b")
				}, ErrAllDown},
				{"With a name that is there", func() (*Ring, error) { return r.With(Node{"a", 1}) }, ErrDuplicate},
				{"With an empty name", func() (*Ring, error) { return r.With(Node{"", 1}) }, nil},
				{"With weight zero", func() (*Ring, error) { return r.With(Node{"d", 0}) }, ErrWeight},
				{"With weight NaN", func() (*Ring, error) { return r.With(Node{"d", math.NaN()}) }, ErrWeight},
				{"WithWeight of an unknown name", func() (*Ring, error) { return r.WithWeight("d", 1) }, ErrUnknown},
				{"WithWeight negative", func() (*Ring, error) { return r.WithWeight("a", -1) }, ErrWeight},
				{"WithDown of an unknown name", func() (*Ring, error) { return r.WithDown("a", "d") }, ErrUnknown},
				{"WithDown of all", func() (*Ring, error) { return r.WithDown("a", "b", "c") }, ErrAllDown},
			} {
				got, err := c.call()
				if err == nil || got != nil {
					t.Errorf("%s: got %v, %v, want an error", c.name, got, err)
				} else if c.want != nil && !errors.Is(err, c.want) {
					t.Errorf("%s: got %v, want %v", c.name, err, c.want)
				} else if !strings.HasPrefix(err.Error(), "ring: ") {
					t.Errorf("%s: error does not name the package: %v", c.name, err)
				}
			}
			if !slices.Equal(r.owners, owners) || !slices.Equal(down.owners, downOwners) {
				t.Error("a table changed")
			}
		})
	}
}

func TestOrderOfNodesDoesNotMatter(t *testing.T) {
	rnd := random(t)
	for _, p := range []Placement{Table{Buckets: 1 << 14}, Table{Buckets: 1 << 14, Exact: true}, Classic{}} {
		for range times(100) {
			nodes := randomNodes(rnd, 2+rnd.IntN(10))
			a := mustNew(t, nodes, &Options{Placement: p})
			rnd.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
			b := mustNew(t, nodes, &Options{Placement: p})
			// A third way: one node after another.
			c := mustNew(t, nodes[:2], &Options{Placement: p})
			for _, n := range nodes[2:] {
				c = must(t)(c.With(n))
			}
			for _, other := range []*Ring{b, c} {
				if a.Fingerprint() != other.Fingerprint() || !slices.Equal(a.owners, other.owners) {
					t.Fatalf("%+v: the order of %v matters", p, nodes)
				}
			}
		}
	}
}
