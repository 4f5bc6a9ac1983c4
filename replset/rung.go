package replset

import (
	"context"
	"crypto/rand"
	"time"
)

// ladder is the ways to write, best first. What a node refuses is remembered,
// and the next way down is used there from then on.
//
//	nodeSteps  many replicas a call, members once per node (lua/node.lua)
//	keySteps   one replica a call, its keys declared (lua/apply.lua)
//	txRung     transactions under a lease, where scripts are refused
//
// A ladder serves one write at a time.
type ladder struct {
	scripts scriptRung
	tx      txRung
}

func newLadder(s *Set) *ladder {
	return &ladder{scriptRung{s}, txRung{set: s, token: rand.Text()}}
}

// home applies c at the home slot, where it gets its number: the greatest yet,
// so whatever lands after it from an earlier write is refused.
func (l *ladder) home(ctx context.Context, c *change) error {
	s := l.tx.set
	if !s.noEval.isSet() {
		err := l.scripts.home(ctx, c)
		if err == nil || !scriptsRefused(err) {
			return err
		}
		s.noEval.set()
	}
	return l.tx.home(ctx, c)
}

// node prepares to take c to slots of one node, known by its address.
func (l *ladder) node(c *change, addr string) stepper {
	if l.tx.set.noEval.isSet() {
		return txSteps{&l.tx, c}
	}
	return l.scripts.node(c, addr)
}

// end gives back what home took, also when ctx has ended.
func (l *ladder) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	l.tx.end(ctx)
}

// A stepper takes a change to one node's slots, some at a time.
type stepper interface {
	// step returns an outcome for each slot: nil (the slot holds the change, or
	// did already), errBehind, newerError, or what went wrong.
	step(ctx context.Context, slots []uint16) []error

	// end deletes what the steps left on the node for each other.
	end(ctx context.Context)
}

// node is what a set has learnt of one node.
type node struct {
	keysOnly  flag // it refuses scripts that declare no key
	noRestore flag // it refuses RESTORE
	trip      trip
}

func (s *Set) nodeAt(addr string) *node {
	n, _ := s.nodes.LoadOrStore(addr, &node{})
	return n.(*node)
}
