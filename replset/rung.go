package replset

import "context"

// A rung is one way to write. It serves one write at a time.
type rung interface {
	// home applies c at the home slot, where it gets its number: the greatest
	// yet, so whatever lands after it from an earlier write is refused.
	home(ctx context.Context, c *change) error

	// node prepares to take c to slots of one node, known by its address.
	node(c *change, addr string) stepper

	// end releases what home took.
	end(ctx context.Context)
}

// A stepper takes a change to one node's slots, some at a time.
type stepper interface {
	// step returns an outcome for each slot: nil (the slot holds the change, or
	// did already), errBehind, newerError, or what went wrong.
	step(ctx context.Context, slots []uint16) []error

	// end deletes what the steps left on the node for each other.
	end(ctx context.Context)
}

// The rungs, best first. What a node refuses is remembered, and the next one
// down is used there from then on.
//
//	nodeSteps  many replicas a call, members once per node (lua/node.lua)
//	keySteps   one replica a call, its keys declared (lua/apply.lua)
//	txRung     transactions under a lease, where scripts are refused
func (s *Set) rung() rung {
	if s.noEval.isSet() {
		return &txRung{set: s}
	}
	return scriptRung{s}
}

// node is what a set has learnt of one node.
type node struct {
	keysOnly  flag // it refuses scripts that declare no key
	noRestore flag // it refuses RESTORE
}

func (s *Set) nodeAt(addr string) *node {
	n, _ := s.nodes.LoadOrStore(addr, &node{})
	return n.(*node)
}
