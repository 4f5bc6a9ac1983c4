package replset

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkit/shardkit/slotmap"
)

var (
	//go:embed lua/verify.lua
	verifySource string
	verifyScript = newScript(verifySource)
)

// VerifyOptions say what Verify compares. A nil pointer means all replicas
// against what the set itself proves.
type VerifyOptions struct {
	// Sample is how many slots to look at, chosen at random. 0 means all.
	Sample int

	// Members are what every replica should hold. nil means what was last
	// written: the home replica's content, or, where that does not agree with its
	// stamp, the content of a replica with the greatest number that does.
	Members []string
}

// Verification is what Verify found.
type Verification struct {
	Number  int64   // of the write that replicas should hold; 0 where no replica has these members
	Members int     // how many members they should hold; -1 for a cleared set
	Checked int     // slots looked at
	Drifted []Drift // those that are not as they should be, in slot order
}

// Consistent reports whether every replica looked at is as it should be.
func (v *Verification) Consistent() bool { return len(v.Drifted) == 0 }

// Drift is one replica that is not as it should be.
type Drift struct {
	Slot   uint16
	Kind   DriftKind
	Number int64 // the replica's own, for Older and Newer
	Err    error // for Unreachable
}

// DriftKind says in which way a replica differs.
type DriftKind string

const (
	Missing     DriftKind = "missing"     // no replica, or no stamp and no replica
	Older       DriftKind = "older"       // it missed a write
	Newer       DriftKind = "newer"       // it holds a write that the home slot has lost, or one that is under way
	Content     DriftKind = "content"     // other members than it should have
	Extra       DriftKind = "extra"       // all the members, and more; for a cleared set, any
	WrongType   DriftKind = "type"        // not a set
	Foreign     DriftKind = "foreign"     // a key without our mark
	Unreachable DriftKind = "unreachable" // the slot did not answer
)

func (d Drift) String() string {
	switch {
	case d.Err != nil:
		return fmt.Sprintf("slot %d: %s: %v", d.Slot, d.Kind, d.Err)
	case d.Number != 0:
		return fmt.Sprintf("slot %d: %s: write %d", d.Slot, d.Kind, d.Number)
	}
	return fmt.Sprintf("slot %d: %s", d.Slot, d.Kind)
}

// driftError carries a Drift as a step's outcome.
type driftError struct{ Drift }

func (e driftError) Error() string { return e.String() }

// Verify compares replicas, member by member, with what they should hold. It
// reads only, but for a key with the members on each master, which it deletes.
// Writes that go on meanwhile show as Newer.
func (s *Set) Verify(ctx context.Context, opts *VerifyOptions) (*Verification, error) {
	var o VerifyOptions
	if opts != nil {
		o = *opts
	}
	if o.Sample < 0 {
		return nil, fmt.Errorf("replset: verify: sample of %d slots: give 0 for all, or a positive number", o.Sample)
	}
	want, err := s.expected(ctx, o.Members)
	if err != nil {
		return nil, fmt.Errorf("replset: verify: %w", err)
	}
	slots := s.slots.list
	if o.Sample > 0 && o.Sample < len(slots) {
		slots = nil
		for _, i := range rand.Perm(len(s.slots.list))[:o.Sample] {
			slots = append(slots, s.slots.list[i])
		}
		slices.Sort(slots)
	}
	return s.compare(ctx, &want, slots), nil
}

// Reconcile verifies all replicas and repairs those that drifted, leaving the
// others alone. members are what the set should hold; nil takes what the set
// itself proves, or fails with ErrNoAuthority. Members that no replica's stamp
// knows are published as a new write.
//
// It returns what it found before the repair. A *WriteError names the slots that
// could not be repaired; foreign keys are among them unless Options.Adopt is set.
func (s *Set) Reconcile(ctx context.Context, members []string) (*Verification, error) {
	const op = "reconcile"
	want, err := s.expected(ctx, members)
	if err != nil {
		return nil, fmt.Errorf("replset: %s: %w", op, err)
	}
	found := s.compare(ctx, &want, s.slots.list)
	if found.Consistent() {
		return found, nil
	}
	want.op = op
	var slots []uint16
	newer := false
	for _, d := range found.Drifted {
		slots = append(slots, d.Slot)
		newer = newer || d.Kind == Newer
	}
	if want.number == 0 || newer {
		if want.kind == clearing {
			return found, s.Clear(ctx)
		}
		return found, s.write(ctx, change{op: op, kind: replace, add: want.add, count: want.count, digest: want.digest})
	}
	l := newLadder(s)
	defer l.end(ctx)
	f := newFanout(s, l, &want, slots)
	f.run(ctx)
	return found, f.err()
}

// expected works out what replicas should hold, as a change that makes them so.
func (s *Set) expected(ctx context.Context, members []string) (change, error) {
	if members == nil {
		return s.authority(ctx)
	}
	members = unique(members)
	want := change{kind: replace, add: members, count: len(members), digest: digestOf(members)}
	stamps, err := s.stamps(ctx)
	if err != nil {
		return want, err
	}
	for _, st := range stamps { // greatest number first
		if st.count == want.count && st.digest == want.digest {
			want.number, want.before = st.number, st.stamp
			break
		}
	}
	return want, nil
}

// authority finds content that is proved by its stamp: the home replica's, or
// else that of the greatest number that some replica can prove.
func (s *Set) authority(ctx context.Context) (change, error) {
	c, err := s.contentOf(ctx, s.home)
	if err == nil || !errors.Is(err, ErrReplicaMissing) && !errors.Is(err, ErrReplicaDrifted) && !isForeign(err) {
		return c, err
	}
	stamps, scanErr := s.stamps(ctx)
	if scanErr != nil {
		return c, scanErr
	}
	if len(stamps) == 0 {
		return c, fmt.Errorf("%w: set %q was never published", ErrReplicaMissing, s.name)
	}
	for _, st := range stamps {
		if c, ok := s.witness(ctx, st); ok {
			return c, nil
		}
	}
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	return c, ErrNoAuthority
}

// witness looks for a replica whose content agrees with the stamp, in random
// order, since spoilt ones may lie together.
func (s *Set) witness(ctx context.Context, st seenStamp) (change, bool) {
	rand.Shuffle(len(st.slots), func(i, j int) { st.slots[i], st.slots[j] = st.slots[j], st.slots[i] })
	for slots := range slices.Chunk(st.slots, 64) {
		keys, cmds := make([]string, len(slots)), make([][]string, len(slots))
		for i, slot := range slots {
			keys[i] = s.replicaKey(slot)
			cmds[i] = []string{"SMEMBERS", keys[i]}
		}
		for _, v := range s.backend.Pipeline(ctx, keys, cmds) {
			members, err := asStrings(v)
			if err != nil {
				continue // spoilt in another way, or out of reach
			}
			c := change{kind: replace, add: members, number: st.number, before: st.stamp, count: st.count, digest: st.digest}
			if st.count == cleared && len(members) == 0 {
				c.kind = clearing
				return c, true
			}
			if st.count == len(members) && st.digest == digestOf(members) {
				return c, true
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	return change{}, false
}

func isForeign(err error) bool {
	var foreign *ForeignKeyError
	return errors.As(err, &foreign)
}

// seenStamp is a stamp and the slots that hold it.
type seenStamp struct {
	stamp
	slots []uint16
}

// stamps reads the stamps of all slots, and returns those there are, greatest
// number first.
func (s *Set) stamps(ctx context.Context) ([]seenStamp, error) {
	seen := map[stamp]*seenStamp{}
	for slots := range slices.Chunk(s.slots.list, 2048) {
		keys, cmds := make([]string, len(slots)), make([][]string, len(slots))
		for i, slot := range slots {
			keys[i] = s.replicaKey(slot) + stampSuffix
			cmds[i] = []string{"GET", keys[i]}
		}
		for i, v := range s.backend.Pipeline(ctx, keys, cmds) {
			st, err := readStamp(keys[i], v)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if err != nil || st.number == 0 {
				continue // reported as drift of that slot
			}
			if seen[st] == nil {
				seen[st] = &seenStamp{stamp: st}
			}
			seen[st].slots = append(seen[st].slots, slots[i])
		}
	}
	var list []seenStamp
	for _, st := range seen {
		list = append(list, *st)
	}
	slices.SortFunc(list, func(a, b seenStamp) int {
		if a.number != b.number {
			return int(min(max(b.number-a.number, -1), 1))
		}
		return len(b.slots) - len(a.slots)
	})
	return list, nil
}

// compare looks at each slot.
func (s *Set) compare(ctx context.Context, want *change, slots []uint16) *Verification {
	want.op = "verify"
	v := &Verification{Number: want.number, Members: want.count, Checked: len(slots)}
	f := newFanout(s, nil, want, slots)
	f.open = func(addr string) stepper {
		return &verifySteps{set: s, want: want, source: source{set: s, members: want.add, how: "members"}}
	}
	f.run(ctx)
	for slot, err := range f.failed {
		d := Drift{Slot: slot, Kind: Unreachable, Err: err}
		var drift driftError
		if errors.As(err, &drift) {
			d = drift.Drift
		}
		v.Drifted = append(v.Drifted, d)
	}
	slices.SortFunc(v.Drifted, func(a, b Drift) int { return int(a.Slot) - int(b.Slot) })
	return v
}

// verifySteps compares the replicas of one node by a script that runs there, and
// by plain commands where it cannot.
type verifySteps struct {
	set    *Set
	want   *change
	source source
}

func (v *verifySteps) end(ctx context.Context) { v.source.end(ctx) }

func (v *verifySteps) step(ctx context.Context, slots []uint16) []error {
	if v.set.noEval.isSet() {
		return v.plainly(ctx, slots)
	}
	exceptions, err := v.call(ctx, slots)
	if err != nil {
		if scriptsRefused(err) {
			v.set.noEval.set()
		}
		return v.plainly(ctx, slots)
	}
	outcomes := make([]error, len(slots))
	var left []uint16
	var at []int
	for _, e := range exceptions {
		if e.slot < 0 { // the source is gone
			v.source.lost()
			return v.plainly(ctx, slots)
		}
		kind, number, _ := strings.Cut(e.what, " ")
		if kind == "redo" {
			left, at = append(left, slots[e.slot]), append(at, e.slot)
			continue
		}
		n, _ := strconv.ParseInt(number, 10, 64)
		outcomes[e.slot] = driftError{Drift{Slot: slots[e.slot], Kind: DriftKind(kind), Number: n}}
	}
	for i, err := range v.plainly(ctx, left) {
		outcomes[at[i]] = err
	}
	return outcomes
}

func (v *verifySteps) call(ctx context.Context, slots []uint16) ([]exception, error) {
	if err := v.source.ready(ctx, slots[0]); err != nil {
		return nil, err
	}
	args := make([]string, 0, 3+len(slots))
	args = append(args, v.set.name, v.want.stamp().String(), v.source.key)
	for _, slot := range slots {
		args = append(args, slotmap.Tag(slot))
	}
	reply, err := v.set.eval(ctx, v.set.replicaKey(slots[0]), verifyScript, nil, args)
	if err != nil {
		return nil, err
	}
	return parseExceptions(reply, len(slots))
}

// plainly compares by reading each replica whole.
func (v *verifySteps) plainly(ctx context.Context, slots []uint16) []error {
	keys, cmds := make([]string, 0, 2*len(slots)), make([][]string, 0, 2*len(slots))
	for _, slot := range slots {
		replica := v.set.replicaKey(slot)
		keys = append(keys, replica, replica)
		cmds = append(cmds, []string{"GET", replica + stampSuffix}, []string{"SMEMBERS", replica})
	}
	outcomes := make([]error, len(slots))
	replies := v.set.backend.Pipeline(ctx, keys, cmds)
	for i, slot := range slots {
		d, err := v.judge(keys[2*i], replies[2*i], replies[2*i+1])
		if d.Kind != "" {
			d.Slot = slot
			err = driftError{d}
		}
		outcomes[i] = err
	}
	return outcomes
}

// judge compares one replica, read whole, with what it should be. It returns an
// error where the slot did not answer.
func (v *verifySteps) judge(replica string, stampReply, membersReply any) (Drift, error) {
	st, err := readStamp(replica+stampSuffix, stampReply)
	if isForeign(err) {
		return Drift{Kind: Foreign}, nil
	}
	if err != nil {
		return Drift{}, err
	}
	members, err := asStrings(membersReply)
	if err != nil && code(err) == "WRONGTYPE" {
		if st.number == 0 {
			return Drift{Kind: Foreign}, nil
		}
		return Drift{Kind: WrongType}, nil
	}
	if err != nil {
		return Drift{}, err
	}
	want := v.want.stamp()
	switch {
	case st.number == 0 && len(members) > 0:
		return Drift{Kind: Foreign}, nil
	case st.number == 0 && want.count == cleared:
		return Drift{}, nil
	case st.number == 0, st == want && len(members) == 0 && want.count > 0:
		return Drift{Kind: Missing}, nil
	case st.number > want.number:
		return Drift{Kind: Newer, Number: st.number}, nil
	case st.number < want.number:
		return Drift{Kind: Older, Number: st.number}, nil
	case want.count == cleared && len(members) > 0:
		return Drift{Kind: Extra}, nil
	case st != want:
		return Drift{Kind: Content}, nil
	case want.count == cleared:
		return Drift{}, nil
	}
	hits := 0
	have := make(content, len(members))
	for _, m := range members {
		have[m] = struct{}{}
	}
	for _, m := range v.want.add {
		if have.has(m) {
			hits++
		}
	}
	switch {
	case hits != want.count:
		return Drift{Kind: Content}, nil
	case len(members) > want.count:
		return Drift{Kind: Extra}, nil
	}
	return Drift{}, nil
}
