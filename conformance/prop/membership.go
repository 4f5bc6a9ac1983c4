package prop

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strings"

	"github.com/leanovate/gopter"

	"github.com/shardkit/shardkit/ring"
)

// A membership is some nodes, and one that comes, goes or changes its weight.
type membership struct {
	nodes  []ring.Node // without the one that changes
	node   ring.Node
	change change
	weight float64 // afterwards, of a node whose weight changes
}

type change string

const (
	joins   change = "joins"
	leaves  change = "leaves"
	reweigh change = "changes its weight"
)

func (m membership) before() []ring.Node {
	if m.change == joins {
		return m.nodes
	}
	return m.all()
}

func (m membership) after() []ring.Node {
	switch m.change {
	case leaves:
		return m.nodes
	case reweigh:
		return append(slices.Clone(m.nodes), ring.Node{Name: m.node.Name, Weight: m.weight})
	}
	return m.all()
}

func (m membership) all() []ring.Node { return append(slices.Clone(m.nodes), m.node) }

func (m membership) String() string {
	var b strings.Builder
	fmt.Fprint(&b, named(m.node), " ", m.change)
	if m.change == reweigh {
		fmt.Fprintf(&b, " to %v", m.weight)
	}
	fmt.Fprint(&b, " beside")
	for _, n := range m.nodes {
		fmt.Fprint(&b, " ", named(n))
	}
	return b.String()
}

func named(n ring.Node) string {
	if n.Weight == 1 {
		return fmt.Sprintf("%q", n.Name)
	}
	return fmt.Sprintf("%q=%v", n.Name, n.Weight)
}

// memberships generates 1 to 11 nodes and one more.
func memberships(weights bool) gopter.Gen {
	return generator(func(p *gopter.GenParameters) membership {
		r := p.Rng
		names := nodeNames(r, 2+r.Intn(11))
		weigh := func() float64 {
			if !weights || r.Intn(3) == 0 {
				return 1
			}
			return math.Exp2(r.Float64()*4 - 2)
		}
		m := membership{node: ring.Node{Name: names[0], Weight: weigh()}, weight: 1}
		for _, name := range names[1:] {
			m.nodes = append(m.nodes, ring.Node{Name: name, Weight: weigh()})
		}
		m.change = []change{joins, leaves}[r.Intn(2)]
		if weights && r.Intn(3) == 0 {
			m.change, m.weight = reweigh, weigh()
		}
		return m
	}, membership.smaller)
}

func (m membership) smaller() (smaller []membership) {
	for i := range m.nodes {
		if len(m.nodes) > 1 {
			less := m
			less.nodes = slices.Delete(slices.Clone(m.nodes), i, i+1)
			smaller = append(smaller, less)
		}
	}
	plain := func(n ring.Node, name string) (ring.Node, bool) {
		if n.Weight != 1 {
			return ring.Node{Name: n.Name, Weight: 1}, true
		}
		taken := slices.ContainsFunc(m.all(), func(o ring.Node) bool { return o.Name == name })
		return ring.Node{Name: name, Weight: 1}, !taken
	}
	for i, n := range m.nodes {
		if n, ok := plain(n, fmt.Sprint(i)); ok {
			less := m
			less.nodes = slices.Clone(m.nodes)
			less.nodes[i] = n
			smaller = append(smaller, less)
		}
	}
	if n, ok := plain(m.node, "x"); ok {
		less := m
		less.node = n
		smaller = append(smaller, less)
	}
	return smaller
}

// nodeNames returns n names, distinct, of one kind: as people, orchestrators and enemies give them.
func nodeNames(r *rand.Rand, n int) []string {
	stem := fmt.Sprintf("%x", r.Uint32())
	kind := r.Intn(5)
	names := make([]string, n)
	for i := range names {
		switch kind {
		case 0:
			names[i] = fmt.Sprintf("shard-%d", i+1)
		case 1:
			names[i] = fmt.Sprintf("%s-%d", stem, i+1)
		case 2:
			names[i] = fmt.Sprintf("10.%d.%d.%d:6379", r.Intn(256), r.Intn(256), i)
		case 3: // each begins with the one before it
			names[i] = stem + strings.Repeat("1", i)
		case 4:
			names[i] = string([]byte{byte(r.Intn(256)), byte(i), byte(r.Intn(256))})
		}
	}
	r.Shuffle(n, func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}
