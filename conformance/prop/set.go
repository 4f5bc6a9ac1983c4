package prop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/commands"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

var setCases = []conformance.Case{
	{
		ID: "PR-201", Name: "as-a-plain-set", Profile: conformance.Replset, Level: conformance.Core, Tier: conformance.Property,
		Requirement: "after any sequence of publish, add, remove, apply, clear, damage, verify and reconcile, every replica holds what a plain set would, or what damage left there, and every read and verification tells which",
		Run:         func(t *conformance.T) { sequences(t, fewer(300, 20), nil) },
	},
	{
		ID: "PR-202", Name: "as-a-plain-set-while-slots-move", Profile: conformance.Replset, Level: conformance.Core, Tier: conformance.Live,
		Requirement: "the same while slots, the home slot among them, move to other masters between the steps",
		Run:         func(t *conformance.T) { sequences(t, fewer(60, 10), t.Cluster()) },
	},
}

// sequences tries up to so many sequences of up to 25 steps.
func sequences(t *conformance.T, tries int, cluster *harness.Cluster) {
	tr := newTrial(t, tries, 25)
	tr.check(commands.Prop(&commands.ProtoCommands{
		InitialStateGen:            func(*gopter.GenParameters) *gopter.GenResult { return gopter.NewGenResult(model{}, gopter.NoShrinker) },
		NewSystemUnderTestFunc:     func(commands.State) commands.SystemUnderTest { return newSubject(tr, cluster) },
		DestroySystemUnderTestFunc: func(commands.SystemUnderTest) { tr.done.Add(1) },
		GenCommandFunc:             func(commands.State) gopter.Gen { return steps(cluster != nil) },
	}))
}

// subject is a set with its servers, and a sharded key beside each replica.
type subject struct {
	trial   *trial
	backend replset.Backend
	cluster *harness.Cluster // nil where slots stay
	name    string
	set     *replset.Set
	slots   [places]uint16
	holds   [places]members // the replicas, when last read
	broken  error           // what kept it from being made
}

func newSubject(tr *trial, cluster *harness.Cluster) *subject {
	s := &subject{trial: tr, backend: tr.t.Backend(), cluster: cluster, name: fmt.Sprint(tr.t.Prefix(), "set-", tr.done.Load())}
	if tr.over() {
		return s
	}
	home := int(slotmap.Slot(s.name))
	var keys []string
	var cmds [][]string
	for i := range s.slots {
		s.slots[i] = uint16((home + i*slotmap.Slots/places) % slotmap.Slots)
		keys = append(keys, s.key(i))
		cmds = append(cmds, append([]string{"SADD", s.key(i), "outsider"}, members(sharded).list()...))
	}
	for _, v := range s.backend.Pipeline(tr.t.Context(), keys, cmds) {
		if err, failed := v.(error); failed {
			s.broken = fmt.Errorf("SADD of the sharded keys: %w", err)
		}
	}
	s.open()
	return s
}

// open forgets what the set learnt of its servers, as a process that begins anew.
func (s *subject) open() {
	set, err := replset.New(s.backend, s.name, &replset.Options{Slots: s.slots[:]})
	s.set, s.broken = set, errors.Join(s.broken, err)
}

func (s *subject) key(place int) string     { return slotmap.KeyForSlot(s.name+":sharded", s.slots[place]) }
func (s *subject) replica(place int) string { return slotmap.KeyForSlot(s.name, s.slots[place]) }

// replicas reads every replica past the library.
func (s *subject) replicas(ctx context.Context) (all [places]members, err error) {
	var keys []string
	var cmds [][]string
	for i := range s.slots {
		keys = append(keys, s.replica(i))
		cmds = append(cmds, []string{"SMEMBERS", s.replica(i)})
	}
	for i, v := range s.backend.Pipeline(ctx, keys, cmds) {
		list, err := texts(v)
		if err != nil {
			return all, fmt.Errorf("SMEMBERS in slot %d: %w", s.slots[i], err)
		}
		var ok bool
		if all[i], ok = lettersOf(list); !ok {
			return all, fmt.Errorf("slot %d holds %.300q, which no write left", s.slots[i], list)
		}
	}
	return all, nil
}

func texts(v any) ([]string, error) {
	if err, failed := v.(error); failed {
		return nil, err
	}
	var list []string
	some, ok := v.([]any)
	for _, v := range some {
		text, isText := v.(string)
		list, ok = append(list, text), ok && isText
	}
	if !ok {
		return nil, fmt.Errorf("the reply %v is no list of strings", v)
	}
	return list, nil
}

// A step is one command of a sequence.
type step struct {
	op     string
	a, b   members
	place  int
	letter int // which member is damaged
}

// ops are the steps there are, each as often as it is listed.
var ops = strings.Fields("publish publish add add remove remove apply apply clear damage damage damage verify reconcile restore read read reopen")

func steps(moves bool) gopter.Gen {
	ops := ops
	if moves {
		ops = append(slices.Clone(ops), "move", "move", "move")
	}
	some := func(p *gopter.GenParameters) members {
		m := members(p.Rng.Intn(1 << letters))
		return m & members(p.Rng.Intn(1<<letters)) // a few, as a rule
	}
	return generator(func(p *gopter.GenParameters) step {
		s := step{op: ops[p.Rng.Intn(len(ops))]}
		switch s.op {
		case "publish", "add", "remove", "restore":
			s.a = some(p)
		case "apply":
			s.a, s.b = some(p), some(p)
			if p.Rng.Intn(8) > 0 {
				s.b &^= s.a
			}
		case "damage":
			s.op = []string{"lose", "drop", "intrude", "swap"}[p.Rng.Intn(4)]
			s.place, s.letter = 1+p.Rng.Intn(places-1), p.Rng.Intn(singles) // the home replica is what others are repaired by
		case "read":
			s.place = p.Rng.Intn(places)
		case "move":
			s.place, s.letter = p.Rng.Intn(places), p.Rng.Intn(places)
		}
		return s
	}, step.smaller)
}

func (s step) smaller() (smaller []step) {
	for _, set := range []*members{&s.a, &s.b} {
		whole := *set
		for left := whole; left != 0; left &= left - 1 {
			*set = whole &^ (left & -left)
			smaller = append(smaller, s)
		}
		*set = whole
	}
	return smaller
}

func (s step) String() string {
	switch s.op {
	case "publish", "add", "remove", "restore":
		return fmt.Sprint(s.op, " ", s.a)
	case "apply":
		return fmt.Sprint("apply +", s.a, " -", s.b)
	case "lose", "intrude", "read", "move":
		return fmt.Sprint(s.op, " ", s.place)
	case "drop", "swap":
		return fmt.Sprint(s.op, " ", s.place, ".", s.letter)
	}
	return s.op
}

// damaged is what damage makes of a replica: all of it lost, a member dropped, an alien one there besides, or in place of another.
func (s step) damaged(r members) members {
	switch s.op {
	case "lose":
		return 0
	case "drop":
		return r &^ r.single(s.letter)
	case "intrude":
		return r | alien
	case "swap":
		if gone := r.single(s.letter); gone != 0 && r&alien == 0 {
			return r&^gone | alien
		}
	}
	return r
}

// PreCondition: what is no replica is not damaged.
func (s step) PreCondition(state commands.State) bool {
	switch s.op {
	case "lose", "drop", "intrude", "swap":
		return state.(model).published
	}
	return true
}

// NextState is what the model becomes.
func (s step) NextState(state commands.State) commands.State {
	before := state.(model)
	before.before = nil
	m := s.next(before)
	m.before = &before
	return m
}

func (s step) next(m model) model {
	switch s.op {
	case "publish", "restore":
		return m.publish(s.a)
	case "add":
		return m.apply(s.a, 0)
	case "remove":
		return m.apply(0, s.a)
	case "apply":
		if s.a&s.b == 0 {
			return m.apply(s.a, s.b)
		}
	case "clear":
		return m.clear()
	}
	return m
}

// leaves are what the step may leave in a place, which held had before.
func (s step) leaves(before, after model, place int, had members) []members {
	switch s.op {
	case "publish", "restore", "clear", "reconcile":
		return []members{after.set}
	case "add", "remove", "apply":
		add, remove := s.a, s.b
		if s.op == "remove" {
			add, remove = 0, s.a
		}
		if !before.published || s.refusal(before) != nil || add|remove == 0 {
			break
		}
		if had == before.set {
			return []members{after.set}
		}
		return []members{after.set, had&^remove | add}
	case "lose", "drop", "intrude", "swap":
		if s.place == place {
			return []members{s.damaged(had)}
		}
	}
	return []members{had}
}

// result is what a step saw.
type result struct {
	over     bool // nothing, for it was too late
	err      error
	found    *replset.Verification
	read     sight
	slots    [places]uint16
	had      [places]members // the replicas before it
	replicas [places]members // and after it
	unread   error           // why they could not be read
}

// Run does it to the servers.
func (s step) Run(sut commands.SystemUnderTest) commands.Result {
	x := sut.(*subject)
	ctx := x.trial.t.Context()
	if x.trial.over() {
		return result{over: true}
	}
	if x.broken != nil {
		return result{unread: x.broken}
	}
	r := result{slots: x.slots, had: x.holds}
	switch s.op {
	case "publish":
		r.err = x.set.Publish(ctx, s.a.list())
	case "add":
		r.err = x.set.Add(ctx, s.a.list()...)
	case "remove":
		r.err = x.set.Remove(ctx, s.a.list()...)
	case "apply":
		r.err = x.set.Apply(ctx, replset.Delta{Add: s.a.list(), Remove: s.b.list()})
	case "clear":
		r.err = x.set.Clear(ctx)
	case "verify":
		r.found, r.err = x.set.Verify(ctx, nil)
	case "reconcile":
		r.found, r.err = x.set.Reconcile(ctx, nil)
	case "restore":
		r.found, r.err = x.set.Reconcile(ctx, append([]string{}, s.a.list()...))
	case "lose", "drop", "intrude", "swap":
		r.err = x.damage(ctx, s)
	case "read":
		r.read = x.look(ctx, s.place)
	case "reopen":
		x.open()
		r.err = x.broken
	case "move":
		r.err = x.move(ctx, s.place, s.letter)
	}
	r.replicas, r.unread = x.replicas(ctx)
	x.holds = r.replicas
	r.over = ctx.Err() != nil
	return r
}

// PostCondition compares what was seen with the model.
func (s step) PostCondition(state commands.State, seen commands.Result) *gopter.PropResult {
	if wrong := s.wrong(state.(model), seen.(result)); wrong != "" {
		return &gopter.PropResult{Status: gopter.PropFalse, Labels: []string{fmt.Sprintf("%v: %s", s, wrong)}}
	}
	return &gopter.PropResult{Status: gopter.PropTrue}
}

func (s step) wrong(m model, r result) string {
	if r.over {
		return ""
	}
	if r.unread != nil {
		return r.unread.Error()
	}
	before := *m.before
	want := s.refusal(before)
	if wrong := wrongError(r.err, want); wrong != "" {
		return wrong
	}
	wrong := ""
	switch s.op {
	case "verify", "reconcile":
		if want == nil {
			wrong = wrongDrift(before, r)
		}
	case "read":
		wrong = r.read.wrong(m, r.had[s.place])
	}
	if wrong != "" {
		return wrong
	}
	for i, got := range r.replicas {
		if may := s.leaves(before, m, i, r.had[i]); !slices.Contains(may, got) {
			return fmt.Sprintf("the replica in slot %d, place %d, held %v and holds %v, want %v", r.slots[i], i, r.had[i], got, may[0])
		}
	}
	return ""
}

// errBothWays stands for the error of a member that is added and removed, which is no sentinel.
var errBothWays = errors.New("both added and removed")

// refusal is the error that the step must fail with.
func (s step) refusal(before model) error {
	switch s.op {
	case "add", "remove", "apply":
		switch {
		case s.a&s.b != 0:
			return errBothWays
		case s.a|s.b != 0 && !before.published:
			return replset.ErrReplicaMissing
		}
	case "verify", "reconcile":
		if !before.known {
			return replset.ErrReplicaMissing
		}
	}
	return nil
}

func wrongError(err, want error) string {
	switch {
	case want == nil && err == nil, want != nil && errors.Is(err, want), want == errBothWays && err != nil && strings.Contains(err.Error(), want.Error()):
		return ""
	case want == nil:
		return fmt.Sprintf("got the error %v", err)
	}
	return fmt.Sprintf("got the error %v, want %v", err, want)
}

func wrongDrift(before model, r result) string {
	found := make(map[uint16]replset.DriftKind)
	for _, d := range r.found.Drifted {
		found[d.Slot] = d.Kind
	}
	for i, slot := range r.slots {
		if want := before.drift(r.had[i]); found[slot] != want {
			return fmt.Sprintf("found %v, want %q at place %d, slot %d, which holds %v", r.found.Drifted, want, i, slot, r.had[i])
		}
		delete(found, slot)
	}
	count := -1
	if before.published {
		count = before.set.size()
	}
	if len(found) > 0 || r.found.Members != count || r.found.Checked != places {
		return fmt.Sprintf("found %v, %d members in %d slots, want %d in %d", r.found.Drifted, r.found.Members, r.found.Checked, count, places)
	}
	return ""
}

// sight is what reads beside a key saw.
type sight struct {
	members, shared, without []string
	len, count               int
	contains                 []bool // each letter's first member
	errs                     []error
}

func (x *subject) look(ctx context.Context, place int) (s sight) {
	key := x.key(place)
	s.errs = make([]error, 6)
	s.members, s.errs[0] = x.set.Members(ctx, key)
	s.shared, s.errs[1] = x.set.Intersect(ctx, key)
	s.without, s.errs[2] = x.set.Without(ctx, key)
	s.len, s.errs[3] = x.set.Len(ctx, key)
	s.count, s.errs[4] = x.set.Count(ctx, key, 0)
	var asked []string
	for _, some := range alphabet {
		asked = append(asked, some[0])
	}
	s.contains, s.errs[5] = x.set.ContainsEach(ctx, key, asked...)
	return s
}

func (s sight) wrong(m model, holds members) string {
	want := m.read(holds)
	for i, err := range s.errs {
		if wrong := wrongError(err, want); wrong != "" {
			return fmt.Sprintf("%s: %s", []string{"Members", "Intersect", "Without", "Len", "Count", "ContainsEach"}[i], wrong)
		}
	}
	if want != nil {
		return ""
	}
	for _, list := range []struct {
		op        string
		got, want []string
	}{
		{"Members", s.members, holds.list()},
		{"Intersect", s.shared, (holds & sharded).list()},
		{"Without", s.without, append((sharded &^ holds).list(), "outsider")},
	} {
		if got, want := sorted(list.got), sorted(list.want); !slices.Equal(got, want) {
			return fmt.Sprintf("%s: got %.300q, want %.300q", list.op, got, want)
		}
	}
	if shared := (holds & sharded).size(); s.len != holds.size() || s.count != shared {
		return fmt.Sprintf("Len is %d, Count %d, want %d and %d", s.len, s.count, holds.size(), shared)
	}
	for letter := range alphabet {
		if s.contains[letter] != (holds&(1<<letter) != 0) {
			return fmt.Sprintf("ContainsEach: %.20q: %v", alphabet[letter][0], s.contains[letter])
		}
	}
	return ""
}

// damage changes a replica past the library.
func (x *subject) damage(ctx context.Context, s step) error {
	was := x.holds[s.place]
	now := s.damaged(was)
	cmds := [][]string{{"DEL", x.replica(s.place)}}
	if s.op != "lose" {
		cmds = nil
		for _, change := range []struct {
			command string
			members members
		}{{"SADD", now &^ was}, {"SREM", was &^ now}} {
			if change.members != 0 {
				cmds = append(cmds, append([]string{change.command, x.replica(s.place)}, change.members.list()...))
			}
		}
	}
	if len(cmds) == 0 {
		return nil
	}
	replies, err := x.backend.Tx(ctx, x.replica(s.place), cmds)
	for _, v := range replies {
		if failed, ok := v.(error); ok {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// move takes two replicas' slots, the home slot's as a rule one of them, to another master.
func (x *subject) move(ctx context.Context, place, other int) error {
	first, second := int(x.slots[place]), int(x.slots[other])
	owner, err := x.cluster.Owner(ctx, first)
	if err != nil {
		return err
	}
	masters, err := x.cluster.Masters(ctx)
	if err != nil {
		return err
	}
	slots := []int{first}
	if second != first {
		slots = append(slots, second)
	}
	for _, to := range masters {
		if to != owner {
			return x.cluster.MoveSlots(ctx, to, slots...)
		}
	}
	return errors.New("the cluster has one master")
}
