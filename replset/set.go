package replset

import (
	"errors"
	"fmt"
	"sync"

	"github.com/shardkit/shardkit/slotmap"
)

// Set is a set replicated to every slot of a Redis Cluster: the second operand
// of every read, present wherever the first one lives. It holds no connection
// and starts no goroutine of its own; all methods may be called concurrently.
type Set struct {
	backend Backend
	name    string
	opts    Options
	home    uint16   // the slot whose replica orders the writes
	slots   *slotSet // that hold replicas
	noEval  flag     // the servers refuse scripts
	nodes   sync.Map // address -> *node
}

// New returns the set of that name. It does no I/O. The name becomes the prefix
// of 16384 pairs of keys and must be the same in every process; an empty name,
// or one with a brace, is refused (slotmap.ValidName says why).
func New(backend Backend, name string, opts *Options) (*Set, error) {
	if backend == nil {
		return nil, errors.New("replset: New: the backend is nil")
	}
	if err := slotmap.ValidName(name); err != nil {
		return nil, err
	}
	s := &Set{backend: backend, name: name, opts: opts.withDefaults(), home: slotmap.Slot(name)}
	if s.opts.WaitReplicas < 0 || s.opts.Patience < 0 || s.opts.ReadPatience < 0 || s.opts.StepTime < 0 {
		return nil, fmt.Errorf("replset: New: WaitReplicas %d, Patience %s, ReadPatience %s, StepTime %s: none may be negative",
			s.opts.WaitReplicas, s.opts.Patience, s.opts.ReadPatience, s.opts.StepTime)
	}
	var err error
	if s.slots, err = newSlotSet(s.opts.Slots, s.home); err != nil {
		return nil, err
	}
	return s, nil
}

// Name is the set's name.
func (s *Set) Name() string { return s.name }

// KeyFor is the key of the replica in key's slot. It is a pure function.
func (s *Set) KeyFor(key string) string { return slotmap.KeyFor(s.name, key) }

// HomeSlot is the slot whose replica gives writes their number, and from which
// replicas that fell behind are copied.
func (s *Set) HomeSlot() uint16 { return s.home }

// The keys beside a replica, in its slot.
const (
	stampSuffix  = ":stamp"
	absentSuffix = ":absent" // never written
	leaseSuffix  = ":lease"
	waitSuffix   = ":wait"
	tmpSuffix    = ":tmp:"
	sourceSuffix = ":source:"
)

// replicaKey is the key of the replica in slot.
func (s *Set) replicaKey(slot uint16) string { return slotmap.KeyForSlot(s.name, slot) }
