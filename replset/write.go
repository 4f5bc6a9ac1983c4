package replset

import (
	"context"
	"errors"
	"fmt"
)

// Publish makes members the whole content of every replica; duplicates count
// once, and no member at all is a published empty set. Each replica changes in
// one step, so a reader sees the old set or the new one.
//
// A *WriteError names the slots that were not reached. Any other error comes
// from the home slot, before the other slots were written. Publishing again is
// always right. A set that would take more than Options.MaxBytes is refused with
// a *TooLargeError before anything is written.
func (s *Set) Publish(ctx context.Context, members []string) error {
	members = unique(members)
	if err := s.guard(ctx, members); err != nil {
		return err
	}
	return s.write(ctx, change{op: "publish", kind: replace, add: members, count: len(members), digest: digestOf(members)})
}

// Add adds members to every replica. The set must have been published
// (ErrReplicaMissing): adding to a set that was lost would make a partial set
// look like the whole. Slots that missed an earlier write are brought up to
// date on the way.
func (s *Set) Add(ctx context.Context, members ...string) error {
	return s.write(ctx, change{op: "add", kind: delta, add: unique(members)})
}

// Remove removes members from every replica, as Add adds them.
func (s *Set) Remove(ctx context.Context, members ...string) error {
	return s.write(ctx, change{op: "remove", kind: delta, remove: unique(members)})
}

// Delta is a change to a set.
type Delta struct {
	Add    []string
	Remove []string
}

// Apply adds and removes in one step per replica. A member in both lists is an
// error.
func (s *Set) Apply(ctx context.Context, d Delta) error {
	c := change{op: "apply", kind: delta, add: unique(d.Add), remove: unique(d.Remove)}
	added := make(map[string]bool, len(c.add))
	for _, m := range c.add {
		added[m] = true
	}
	for _, m := range c.remove {
		if added[m] {
			return fmt.Errorf("replset: apply: member %q is both added and removed: decide which", m)
		}
	}
	return s.write(ctx, c)
}

// Clear deletes every replica: reads answer ErrReplicaMissing until the next
// Publish. The write's number stays in each slot for an hour, so that a write
// that began before it and lands late is still refused.
func (s *Set) Clear(ctx context.Context) error {
	return s.write(ctx, change{op: "clear", kind: clearing, count: cleared})
}

type kind int

const (
	replace kind = iota
	delta
	clearing
)

// clearedLife is how long a cleared set's stamps stay, ms.
const clearedLife = "3600000"

// change is one write as each replica gets it. Number, before, count and digest
// are filled in by the home slot.
type change struct {
	op          string
	kind        kind
	add, remove []string // a replacement's whole content is in add

	number int64 // place in the set's order
	before stamp // the home replica's stamp before the change, on which a delta builds
	floor  int64 // the number must be greater, and before must still stand at home; 0 for neither
	count  int   // members after the change, or cleared
	digest uint64
}

// stamp is what a replica's stamp says after the change.
func (c *change) stamp() stamp { return stamp{c.number, c.count, c.digest} }

// weight is how many members each replica is written with.
func (c *change) weight() int { return len(c.add) + len(c.remove) }

// errMovedOn: another write took the home replica in between.
var errMovedOn = errors.New("the home replica holds another write by now")

// errBehind: the replica is not at the number that the delta builds on.
var errBehind = errors.New("the replica missed an earlier write")

// newerError: the replica holds a newer write, of this number.
type newerError int64

func (e newerError) Error() string {
	return fmt.Sprintf("the replica holds the newer write %d", int64(e))
}

// write takes c through the home slot to all the others.
func (s *Set) write(ctx context.Context, c change) error {
	if c.kind == delta && len(c.add)+len(c.remove) == 0 {
		return nil
	}
	l := newLadder(s)
	defer l.end(ctx)
	if err := l.home(ctx, &c); err != nil {
		return slotError(c.op, s.replicaKey(s.home), s.unowned(ctx, s.replicaKey(s.home), err))
	}

	f := newFanout(s, l, &c, s.slots.but(s.home))
	f.run(ctx)
	if len(f.behind) > 0 {
		s.catchUp(ctx, l, f)
	}
	if f.newest > c.number {
		s.overtake(ctx, l, f)
	}
	if s.opts.WaitReplicas > 0 {
		f.waitReplicas(ctx, s.slots.list)
	}
	f.report()
	return f.err()
}

// catchUp copies the home replica, which has seen every write, to the slots
// that missed one.
func (s *Set) catchUp(ctx context.Context, l *ladder, f *fanout) {
	c, err := s.homeContent(ctx)
	if err != nil {
		for _, slot := range f.behind {
			f.fail(slot, fmt.Errorf("missed an earlier write, and the home slot %d cannot tell what it holds: %w", s.home, err))
		}
		return
	}
	c.op = f.c.op
	again := newFanout(s, l, &c, f.behind)
	again.progress, again.failed = f.progress, f.failed
	again.run(ctx)
	f.newest = max(f.newest, again.newest)
}

// resync makes the replicas in slots equal to the home replica.
func (s *Set) resync(ctx context.Context, op string, slots []uint16) error {
	c, err := s.homeContent(ctx)
	if err != nil {
		return slotError(op, s.replicaKey(s.home), err)
	}
	c.op = op
	l := newLadder(s)
	defer l.end(ctx)
	f := newFanout(s, l, &c, slots)
	f.run(ctx)
	if f.newest > c.number {
		s.overtake(ctx, l, f)
	}
	return f.err()
}

// overtake handles a slot whose number is greater than the home slot's: the
// home slot's master failed over and lost its last writes. What the home
// replica holds now is what counts; it is written again above that number.
func (s *Set) overtake(ctx context.Context, l *ladder, f *fanout) {
	for {
		c, err := s.homeContent(ctx)
		if err != nil {
			f.fail(s.home, fmt.Errorf("a slot holds the newer write %d, and the home slot cannot tell what counts: %w", f.newest, err))
			return
		}
		if c.number >= f.newest {
			return // a racing writer's number: its write replaced ours
		}
		c.op, c.floor = f.c.op, f.newest
		err = l.home(ctx, &c)
		if errors.Is(err, errMovedOn) {
			continue // what was read is not what counts any more
		}
		if err != nil {
			f.fail(s.home, err)
			return
		}
		again := newFanout(s, l, &c, s.slots.but(s.home))
		f.progress.Total += len(again.pending)
		again.progress = f.progress
		again.run(ctx)
		f.failed, f.newest = again.failed, again.newest
		return
	}
}

// homeContent reads the home replica as a change that makes others equal to it.
func (s *Set) homeContent(ctx context.Context) (change, error) { return s.contentOf(ctx, s.home) }

// contentOf reads a replica as a change that makes others equal to it, or fails
// where the content does not agree with the stamp.
func (s *Set) contentOf(ctx context.Context, slot uint16) (change, error) {
	replica := s.replicaKey(slot)
	var c change
	err := s.patiently(ctx, s.opts.Patience, func() error {
		replies, err := s.backend.Tx(ctx, replica, [][]string{{"GET", replica + stampSuffix}, {"SMEMBERS", replica}})
		if err != nil {
			return err
		}
		if len(replies) != 2 {
			return unexpected(replies)
		}
		st, err := readStamp(replica+stampSuffix, replies[0])
		if err != nil {
			return err
		}
		members, err := asStrings(replies[1])
		if err != nil && code(err) == "WRONGTYPE" {
			return ErrReplicaDrifted
		}
		if err != nil {
			return err
		}
		c = change{kind: replace, add: members, number: st.number, before: st, count: st.count, digest: st.digest}
		switch {
		case st.number == 0:
			return ErrReplicaMissing
		case st.count == cleared:
			c.kind, c.add = clearing, nil
		case st.count != len(members) || st.digest != digestOf(members):
			return ErrReplicaDrifted
		}
		return nil
	})
	return c, err
}

// adopts reports whether err is a foreign key that the options allow to be
// overwritten.
func (s *Set) adopts(err error) bool {
	return s.opts.Adopt && isForeign(err)
}

// unique returns members without duplicates, in their order.
func unique(members []string) []string {
	seen := make(map[string]struct{}, len(members))
	out := make([]string, 0, len(members))
	for _, m := range members {
		if _, dup := seen[m]; !dup {
			seen[m] = struct{}{}
			out = append(out, m)
		}
	}
	return out
}
