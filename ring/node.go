package ring

import (
	"math"
	"slices"
	"strings"
)

// Node is one member of a ring.
type Node struct {
	// Name is what is hashed, so it must outlive the address: a node that keeps its name keeps its keys when it moves to
	// another host. Any non-empty string will do; names are compared byte by byte.
	Name string

	// Weight is the node's part of the keys, relative to the other nodes: 2 takes twice the keys of 1. From 1e-9 to 1e9. A
	// weight of zero is refused, and is not taken for 1: whoever computed it most likely means a node that takes no
	// keys, which is [Ring.Without] or [Ring.WithDown].
	Weight float64
}

// Nodes returns nodes of weight 1 with the given names.
func Nodes(names ...string) []Node {
	nodes := make([]Node, len(names))
	for i, name := range names {
		nodes[i] = Node{Name: name, Weight: 1}
	}
	return nodes
}

const (
	maxNodes  = 1<<indexBits - 1
	minWeight = 1e-9
	maxWeight = 1e9
)

// sorted checks nodes and returns a copy in the order of the names, which is what makes a ring the same whatever the order
// in which its nodes were given.
func sorted(nodes []Node) ([]Node, error) {
	if len(nodes) == 0 {
		return nil, ErrNoNodes
	}
	if len(nodes) > maxNodes {
		return nil, errorf("%d nodes: at most %d", len(nodes), maxNodes)
	}
	nodes = slices.Clone(nodes)
	slices.SortFunc(nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	for i, n := range nodes {
		switch {
		case n.Name == "":
			return nil, errorf("a node without a name")
		case i > 0 && n.Name == nodes[i-1].Name:
			return nil, &NodeError{n.Name, ErrDuplicate}
		case math.IsNaN(n.Weight) || n.Weight < minWeight || n.Weight > maxWeight:
			return nil, &NodeError{n.Name, weightError(n.Weight)}
		}
	}
	return nodes, nil
}

func totalWeight(nodes []Node) float64 {
	sum := 0.0
	for _, n := range nodes {
		sum += n.Weight
	}
	return sum
}
