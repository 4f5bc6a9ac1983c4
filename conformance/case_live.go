package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

var liveCases = []Case{
	{
		ID: "RS-101", Name: "life-of-a-set", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "a set is published, changed, emptied, cleared and published again by scripts that write many replicas each, and every slot holds what it should after each write",
		Run:         func(t *T) { life(t, asItIs) },
	},
	{
		ID: "RS-102", Name: "life-by-declared-scripts", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "the same where scripts must declare their keys: one pipelined EVALSHA a replica",
		Run:         func(t *T) { life(t, withoutKeylessScripts) },
	},
	{
		ID: "RS-103", Name: "life-by-transactions", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "the same where the servers run no scripts: one transaction a replica",
		Run:         func(t *T) { life(t, withoutScripts) },
	},
	{
		ID: "RS-104", Name: "reads", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "every read of a set answers what the server's own command answers over the same members in a set beside it",
		Run:         reads,
	},
	{
		ID: "RS-105", Name: "missing-is-not-empty", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "a read where no replica stands, or one that something else changed, is an error, and never an empty set; a published empty set answers",
		Run:         missingIsNotEmpty,
	},
	{
		ID: "RS-106", Name: "any-members", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "members hold any bytes: none, each single byte, a megabyte of NULs; they are written, found and removed",
		Run: func(t *T) {
			b, slots := t.Backend(), []uint16{3, 9000}
			for i, as := range []func(replset.Backend) replset.Backend{asItIs, withoutScripts} {
				s := t.Set(as(b), fmt.Sprint("set", i), replset.Options{Slots: slots})
				members := []string{"", strings.Repeat("\x00x", 1<<19)}
				for i := range 256 {
					members = append(members, string([]byte{byte(i)}))
				}
				t.Publish(s, members...)
				t.WantReplicas("after Publish", s, slots, members...)
				if err := s.Remove(t.ctx, members[2:]...); err != nil {
					t.Fatalf("Remove: %v", err)
				}
				t.WantReplicas("after Remove", s, slots, members[:2]...)
				for _, m := range members[:2] {
					if in, err := s.Contains(t.ctx, t.KeyIn(3, "x"), m); !in || err != nil {
						t.Errorf("Contains(%.10q): %v, %v", m, in, err)
					}
				}
			}
		},
	},
	{
		ID: "RS-107", Name: "every-slot", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "a set reaches all 16384 slots: published, changed and cleared",
		Run: func(t *T) {
			b, all := t.Backend(), Spread(slotmap.Slots)
			s := t.Set(b, "set", replset.Options{})
			members := make([]string, 8)
			for i := range members {
				members[i] = fmt.Sprint("user-", 1000+i)
			}
			t.Publish(s, members...)
			t.WantReplicas("after Publish", s, Spread(1024), members...)
			if err := s.Apply(t.ctx, replset.Delta{Add: []string{"x"}, Remove: members[1:]}); err != nil {
				t.Fatalf("Apply: %v", err)
			}
			t.WantReplicas("after Apply", s, all, members[0], "x")
			if err := s.Clear(t.ctx); err != nil {
				t.Fatalf("Clear: %v", err)
			}
			t.WantReplicas("after Clear", s, all)
		},
	},
	{
		ID: "RS-108", Name: "foreign-keys", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "a write leaves keys alone that it did not write, and names their slots in the error, each with a *ForeignKeyError",
		Run:         foreignKeys,
	},
	{
		ID: "RS-109", Name: "racing-writers", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "writers over several connections at once end in one set in all slots",
		Run:         racingWriters,
	},
	{
		ID: "RS-110", Name: "verify-and-reconcile", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "Verify names exactly the slots whose replicas were spoilt, and Reconcile repairs them",
		Run:         verifyAndReconcile,
	},
	{
		ID: "RS-111", Name: "beside-a-replica", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "beside a replica the server intersects, inside scripts too; over keys of two slots it refuses, and CROSSSLOT comes back",
		Run: func(t *T) {
			const script = "return redis.call('SINTER', KEYS[1], KEYS[2])"
			b := t.Backend()
			s := t.Set(b, "set", replset.Options{Slots: Spread(16)})
			t.Publish(s, "a", "b")
			for i, slot := range Spread(16) {
				subs := t.KeyIn(int(slot), fmt.Sprint("subs", i))
				t.Do(b, "SADD", subs, "b", "x")
				for _, cmd := range [][]string{{"SINTER", subs, s.KeyFor(subs)}, {"EVAL", script, "2", subs, s.KeyFor(subs)}} {
					if got := listOf(b.Do(t.ctx, subs, cmd)); got != `["b"]` {
						t.Errorf("slot %d: %s beside the replica: got %s, want [\"b\"]", slot, cmd[0], got)
					}
				}
				if slotmap.SameSlot(subs, s.Name()) {
					continue
				}
				for _, cmd := range [][]string{{"SINTER", subs, s.Name()}, {"EVAL", script, "2", subs, s.Name()}} {
					if v, err := b.Do(t.ctx, subs, cmd); err == nil || code(err) != "CROSSSLOT" {
						t.Errorf("%s over two slots: got %v, %v, want CROSSSLOT", cmd[0], v, err)
					}
				}
			}
		},
	},
	{
		ID: "RS-112", Name: "usable-after-errors", Profile: Replset, Level: Core, Tier: Live,
		Requirement: "a backend goes on working after calls that failed or were given up: it does not close the user's client, nor mix up later replies",
		Run: func(t *T) {
			b := t.Backend()
			for i := range 60 {
				key := t.KeyIn(i*271, "k")
				w := ways[i%3]
				ended, cancel := context.WithCancel(t.ctx)
				if i%2 == 0 {
					cancel()
				}
				short, cancelShort := context.WithTimeout(ended, t.Scale(1)*10_000) // 10 us: somewhere on the way
				_, _ = w.run(short, b, key, "GET", key)
				cancelShort()
				cancel()
				if _, err := w.run(t.ctx, b, key, "NOSUCHCOMMAND", key); err == nil {
					t.Errorf("%s: NOSUCHCOMMAND: no error", w.name)
				}
				value := fmt.Sprint("v", i)
				if v, err := w.run(t.ctx, b, key, "SET", key, value); err != nil || v != "OK" {
					t.Fatalf("%s: SET after calls that failed: got %v, %v", w.name, v, err)
				}
				if v, err := w.run(t.ctx, b, key, "GET", key); err != nil || v != value {
					t.Fatalf("%s: GET after calls that failed: got %v, %v, want %s", w.name, v, err, value)
				}
			}
		},
	},
	{
		ID: "RS-113", Name: "reads-from-replicas", Profile: Replset, Level: Extended, Tier: Live, Features: []Feature{ReplicaReader},
		Requirement: "with Options.ReadReplicas a set's reads answer right, and server replicas are asked where there are some",
		Run:         readsFromReplicas,
	},
}

// life is a set's whole life, with what it must hold after each step.
func life(t *T, as func(replset.Backend) replset.Backend) {
	slots := Spread(48)
	s := t.Set(as(t.Backend()), "set", replset.Options{Slots: slots})
	many, numbers := make([]string, 700), make([]string, 200)
	for i := range many {
		many[i] = fmt.Sprint("member-", i)
	}
	for i := range numbers {
		numbers[i] = fmt.Sprint(1_000_000 + i)
	}
	ctx := t.ctx
	for _, step := range []struct {
		name  string
		write func() error
		want  []string
	}{
		{"Publish", func() error { return s.Publish(ctx, []string{"a", "b", "a"}) }, []string{"a", "b"}},
		{"Add", func() error { return s.Add(ctx, "c", "a", "\x00\xff", "") }, []string{"a", "b", "c", "\x00\xff", ""}},
		{"Remove", func() error { return s.Remove(ctx, "b", "never", "") }, []string{"a", "c", "\x00\xff"}},
		{"Apply", func() error {
			return s.Apply(ctx, replset.Delta{Add: []string{"d", "a"}, Remove: []string{"c", "never"}})
		}, []string{"a", "d", "\x00\xff"}},
		{"Remove of all", func() error { return s.Remove(ctx, "a", "d", "\x00\xff") }, nil},
		{"Add to the empty set", func() error { return s.Add(ctx, "e") }, []string{"e"}},
		{"Publish of numbers", func() error { return s.Publish(ctx, numbers) }, numbers},
		{"Publish of none", func() error { return s.Publish(ctx, nil) }, nil},
		{"Publish of many", func() error { return s.Publish(ctx, many) }, many},
		{"Clear", func() error { return s.Clear(ctx) }, nil},
		{"Publish after Clear", func() error { return s.Publish(ctx, []string{"f"}) }, []string{"f"}},
	} {
		if err := step.write(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if t.WantReplicas("after "+step.name, s, slots, step.want...); t.Failed() {
			return
		}
	}
	if got := membersOf(s.Members(ctx, t.KeyIn(0, "x"))); got != `["f"]` {
		t.Errorf("Members in the end: got %s, want [\"f\"]", got)
	}
}

func reads(t *T) {
	b, ctx := t.Backend(), t.ctx
	s := t.Set(b, "set", replset.Options{Slots: Spread(64)})
	members := []string{"a", "b", "c", "", "\x00\xff"}
	t.Publish(s, members...)
	for _, slot := range Spread(64)[:9] {
		slot := int(slot)
		subs, extra, plain, into := t.KeyIn(slot, "subs"), t.KeyIn(slot, "extra"), t.KeyIn(slot, "plain"), t.KeyIn(slot, "into")
		t.Do(b, append([]string{"SADD", plain}, members...)...)
		t.Do(b, "SADD", subs, "a", "", "x", "\x00\xff")
		t.Do(b, "SADD", extra, "a", "", "y")
		t.Do(b, "ZADD", plain+"z", "3.5", "a", "1", "b", "-2", "z", "inf", "c")
		server := func(cmd ...string) string { return listOf(t.Do(b, cmd...), nil) }
		for _, check := range []struct{ what, got, want string }{
			{"Intersect", membersOf(s.Intersect(ctx, subs)), server("SINTER", subs, plain)},
			{"Intersect, extra key", membersOf(s.Intersect(ctx, subs, extra)), server("SINTER", subs, extra, plain)},
			{"Intersect, missing key", membersOf(s.Intersect(ctx, subs+"none")), "[]"},
			{"Without", membersOf(s.Without(ctx, subs)), server("SDIFF", subs, plain)},
			{"Members", membersOf(s.Members(ctx, subs)), server("SMEMBERS", plain)},
			{"Count", fmt.Sprint(s.Count(ctx, subs, 0)), "3 <nil>"},
			{"Count, limit", fmt.Sprint(s.Count(ctx, subs, 2)), "2 <nil>"},
			{"Len", fmt.Sprint(s.Len(ctx, subs)), fmt.Sprint(len(members), " <nil>")},
			{"Contains", fmt.Sprint(s.Contains(ctx, subs, "\x00\xff")), "true <nil>"},
			{"ContainsEach", fmt.Sprint(s.ContainsEach(ctx, subs, "x", "", "a")), "[false true true] <nil>"},
			{"Filter", membersOf(replset.Filter(ctx, subs, []*replset.Set{s}, nil)), server("SINTER", subs, plain)},
			{"IntersectScored", fmt.Sprint(s.IntersectScored(ctx, plain+"z")), "[{b 1} {a 3.5} {c +Inf}] <nil>"},
			{"IntersectInto", fmt.Sprint(s.IntersectInto(ctx, into, subs)), "3 <nil>"},
			{"what it stored", server("SMEMBERS", into), server("SINTER", subs, plain)},
		} {
			if check.got != check.want {
				t.Errorf("slot %d: %s: got %s, want %s", slot, check.what, check.got, check.want)
			}
		}
	}
}

func missingIsNotEmpty(t *T) {
	b := t.Backend()
	s := t.Set(b, "set", replset.Options{Slots: Spread(16)})
	key, into := t.KeyIn(0, "subs"), t.KeyIn(0, "into")
	t.Do(b, "SADD", key, "a")
	t.Do(b, "SET", into, "kept")
	check := func(when string, want error) {
		for what, read := range map[string]func(context.Context) error{
			"Intersect": func(ctx context.Context) error { _, err := s.Intersect(ctx, key); return err },
			"Without":   func(ctx context.Context) error { _, err := s.Without(ctx, key); return err },
			"Count":     func(ctx context.Context) error { _, err := s.Count(ctx, key, 0); return err },
			"Members":   func(ctx context.Context) error { _, err := s.Members(ctx, key); return err },
			"Contains":  func(ctx context.Context) error { _, err := s.Contains(ctx, key, "a"); return err },
			"Len":       func(ctx context.Context) error { _, err := s.Len(ctx, key); return err },
			"IntersectInto": func(ctx context.Context) error {
				_, err := s.IntersectInto(ctx, into, key)
				if err != nil && t.Do(b, "GET", into) != "kept" {
					t.Errorf("%s: IntersectInto failed and wrote its destination", when)
				}
				return err
			},
		} {
			if err := read(t.ctx); !errors.Is(err, want) {
				t.Errorf("%s: %s: got %v, want %v", when, what, err, want)
			}
		}
	}
	check("never published", replset.ErrReplicaMissing)
	t.Publish(s, "a", "b")
	t.Do(b, "DEL", s.KeyFor(key))
	check("replica deleted", replset.ErrReplicaMissing)
	t.Publish(s, "a", "b")
	t.Do(b, "SREM", s.KeyFor(key), "b")
	check("a member lost", replset.ErrReplicaDrifted)
	if err := s.Clear(t.ctx); err != nil {
		t.Fatalf("Clear: %v", err)
	}
	check("cleared", replset.ErrReplicaMissing)
	t.Do(b, "SET", into, "")
	t.Publish(s)
	check("published empty", nil)
}

func foreignKeys(t *T) {
	b, slots := t.Backend(), Spread(48)
	for i, as := range []func(replset.Backend) replset.Backend{asItIs, withoutKeylessScripts, withoutScripts} {
		s := t.Set(as(b), fmt.Sprint("set", i), replset.Options{Slots: slots})
		key := func(i int) string { return slotmap.KeyForSlot(s.Name(), slots[i]) }
		t.Do(b, "SADD", key(5), "theirs")
		t.Do(b, "SET", key(11), "theirs")
		t.Do(b, "ZADD", key(29), "1", "theirs")
		foreign := map[uint16]string{slots[5]: key(5), slots[11]: key(11), slots[29]: key(29)}
		for what, err := range map[string]error{
			"Publish":         s.Publish(t.ctx, []string{"a"}),
			"Publish of none": s.Publish(t.ctx, nil),
			"Add":             s.Add(t.ctx, "b"),
			"Clear":           s.Clear(t.ctx),
		} {
			var partly *replset.WriteError
			if !errors.As(err, &partly) || len(partly.Failed) != len(foreign) {
				t.Fatalf("%s: got %v, want %d slots named", what, err, len(foreign))
			}
			for _, f := range partly.Failed {
				var e *replset.ForeignKeyError
				if !errors.As(f, &e) || e.Key != foreign[f.Slot] {
					t.Errorf("%s: slot %d: got %v, want a *ForeignKeyError for %q", what, f.Slot, f.Err, foreign[f.Slot])
				}
			}
		}
		if listOf(t.Do(b, "SMEMBERS", key(5)), nil) != `["theirs"]` || t.Do(b, "GET", key(11)) != "theirs" || t.Do(b, "ZCARD", key(29)) != int64(1) {
			t.Errorf("a foreign key was changed")
		}
	}
}

func racingWriters(t *T) {
	slots := Spread(96)
	const writers, rounds = 4, 6
	var wg sync.WaitGroup
	for w := range writers {
		b := t.Connect(t.Scale(3e9))
		s := t.Set([]func(replset.Backend) replset.Backend{asItIs, withoutKeylessScripts}[w%2](b), "set", replset.Options{Slots: slots})
		rnd := t.Rand(fmt.Sprint(w))
		if w == 0 {
			t.Publish(s)
		}
		wg.Go(func() {
			for range rounds {
				member := fmt.Sprint("m", rnd.IntN(12))
				var err error
				switch rnd.IntN(4) {
				case 0:
					err = s.Publish(t.ctx, []string{member, "all"})
				case 1, 2:
					err = s.Add(t.ctx, member)
				case 3:
					err = s.Remove(t.ctx, member)
				}
				if err != nil {
					t.Errorf("a writer: %v", err)
				}
			}
		})
	}
	wg.Wait()
	s := t.Set(t.Backend(), "set", replset.Options{Slots: slots})
	members, err := s.Members(t.ctx, t.KeyIn(int(slots[0]), "x"))
	if err != nil {
		t.Fatalf("Members in the end: %v", err)
	}
	t.WantReplicas("in the end", s, slots, members...)
	if v, err := s.Verify(t.ctx, nil); err != nil || !v.Consistent() {
		t.Errorf("Verify in the end: %+v, %v", v, err)
	}
}

func verifyAndReconcile(t *T) {
	b, slots := t.Backend(), Spread(64)
	s := t.Set(b, "set", replset.Options{Slots: slots, Adopt: true})
	key := func(i int) string { return slotmap.KeyForSlot(s.Name(), slots[i]) }
	t.Publish(s, "a", "b", "c")
	if v, err := s.Verify(t.ctx, nil); err != nil || !v.Consistent() || v.Members != 3 {
		t.Errorf("Verify after Publish: %+v, %v", v, err)
	}
	t.Do(b, "DEL", key(3))
	t.Do(b, "SREM", key(15), "a")
	t.Do(b, "SADD", key(19), "x")
	t.Do(b, "SET", key(23), "no set any more")
	want := map[uint16]replset.DriftKind{slots[3]: replset.Missing, slots[15]: replset.Content, slots[19]: replset.Extra, slots[23]: replset.WrongType}
	v, err := s.Verify(t.ctx, nil)
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	found := map[uint16]replset.DriftKind{}
	for _, d := range v.Drifted {
		found[d.Slot] = d.Kind
	}
	if fmt.Sprint(found) != fmt.Sprint(want) {
		t.Errorf("Verify found %v, want %v", found, want)
	}
	if _, err := s.Reconcile(t.ctx, nil); err != nil {
		t.Errorf("Reconcile: %v", err)
	}
	t.WantReplicas("after Reconcile", s, slots, "a", "b", "c")
}

func readsFromReplicas(t *T) {
	b := t.Backend()
	if _, ok := b.(replset.ReplicaReader); !ok {
		t.Fatalf("the target promises %s, and the backend is no replset.ReplicaReader", ReplicaReader)
	}
	s := t.Set(b, "set", replset.Options{Slots: Spread(64), ReadReplicas: true})
	t.Publish(s, "a", "b")
	asked := t.replicaReads()
	for i, slot := range Spread(64) {
		key := t.KeyIn(int(slot), "subs")
		t.Do(b, "SADD", key, "b", "x")
		t.Eventually(5e9, fmt.Sprintf("in slot %d the replica has what was written", i), func() bool {
			return membersOf(s.Intersect(t.ctx, key)) == `["b"]`
		})
	}
	if asked >= 0 && t.replicaReads() == asked {
		t.Errorf("64 reads, and no server replica was asked")
	}
}

// replicaReads is how many intersections the server replicas have computed, or -1 where there are none, or none to look into.
func (t *T) replicaReads() int {
	c := t.suite.cluster
	if c == nil {
		return -1
	}
	masters, err := c.Masters(t.ctx)
	t.Need(err)
	n := -1
	for _, m := range masters {
		replicas, err := c.Replicas(t.ctx, m)
		t.Need(err)
		for _, r := range replicas {
			n = max(n, 0) + t.calls(r, "sinter")
		}
	}
	return n
}
