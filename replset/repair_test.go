package replset

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/replset/memory"
)

// put writes a replica with its stamp, as a writer with that number would.
func put(t *testing.T, s *Set, b Backend, slot uint16, number int64, members ...string) {
	t.Helper()
	key := s.replicaKey(slot)
	do(t, b, "DEL", key)
	if len(members) > 0 {
		do(t, b, append([]string{"SADD", key}, members...)...)
	}
	do(t, b, "SET", key+stampSuffix, stamp{number, len(members), digestOf(members)}.String())
}

// A delta brings up to date the slots that missed an earlier write, from home.
func TestDeltaRepairsSlotsThatAreBehind(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, s *Set, b Backend, slot uint16){
		"nothing there": func(t *testing.T, s *Set, b Backend, slot uint16) {
			do(t, b, "DEL", s.replicaKey(slot), s.replicaKey(slot)+stampSuffix)
		},
		"replica deleted":    func(t *testing.T, s *Set, b Backend, slot uint16) { do(t, b, "DEL", s.replicaKey(slot)) },
		"an older write":     func(t *testing.T, s *Set, b Backend, slot uint16) { put(t, s, b, slot, 1, "old") },
		"an older empty set": func(t *testing.T, s *Set, b Backend, slot uint16) { put(t, s, b, slot, 1) },
		"a member lost":      func(t *testing.T, s *Set, b Backend, slot uint16) { do(t, b, "SREM", s.replicaKey(slot), "a") },
		"a member more":      func(t *testing.T, s *Set, b Backend, slot uint16) { do(t, b, "SADD", s.replicaKey(slot), "x") },
		"cleared earlier": func(t *testing.T, s *Set, b Backend, slot uint16) {
			do(t, b, "DEL", s.replicaKey(slot))
			do(t, b, "SET", s.replicaKey(slot)+stampSuffix, "sk1 1 -1 0")
		},
	} {
		for op, write := range map[string]func(ctx context.Context, s *Set) error{
			"add":    func(ctx context.Context, s *Set) error { return s.Add(ctx, "c") },
			"remove": func(ctx context.Context, s *Set) error { return s.Remove(ctx, "b") },
		} {
			t.Run(strings.ReplaceAll(name+" "+op, " ", "-"), func(t *testing.T) {
				b := memory.New()
				s := newFew(t, b, Options{})
				publish(t, s, "a", "b")
				for i := range 5 {
					spoil(t, s, b, s.otherSlot(i*7))
				}
				if err := write(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				if op == "add" {
					wantEverywhere(t, s, "a", "b", "c")
				} else {
					wantEverywhere(t, s, "a")
				}
			})
		}
	}
}

// A slot that failed in passing, was found behind on the next try and then
// repaired, has not failed.
func TestRepairedSlotIsNotNamed(t *testing.T) {
	b := newHooks()
	var last Progress
	s := newFew(t, b, Options{Progress: func(p Progress) { last = p }})
	publish(t, s, "a")
	slot := s.otherSlot(9)
	put(t, s, b, slot, 1, "old")
	fail := times(1, serverError("CLUSTERDOWN The cluster is down"))
	b.before = func(at uint16, cmd []string) error {
		if at == slot && cmd[0] == "SCARD" {
			return fail()
		}
		return nil
	}
	if err := s.Add(t.Context(), "b"); err != nil {
		t.Errorf("got %v, but every slot holds the write", err)
	}
	wantEverywhere(t, s, "a", "b")
	if last.Done != last.Total || last.Failed != 0 {
		t.Errorf("the last progress is %+v", last)
	}
}

// A slot that is behind, where home itself cannot tell what it holds, is named.
func TestHomeThatCannotRepairIsTold(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{})
	publish(t, s, "a")
	slot := s.otherSlot(9)
	put(t, s, b, slot, 1, "old")
	b.before = func(at uint16, cmd []string) error {
		if at == slot && cmd[0] == "SCARD" { // home is written by now
			do(t, b.Backend, "DEL", s.replicaKey(s.home), s.replicaKey(s.home)+stampSuffix)
		}
		return nil
	}
	err := s.Add(t.Context(), "b")
	var partly *WriteError
	if !errors.As(err, &partly) || failedSlots(partly) != failedSlots(&WriteError{Failed: []*SlotError{{Slot: slot}}}) || !errors.Is(err, ErrReplicaMissing) {
		t.Errorf("got %v, want slot %d named, with ErrReplicaMissing", err, slot)
	}
}

// What another writer wrote meanwhile under a higher number stays, and counts
// as written.
func TestNewerWriteWins(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{})
	publish(t, s, "first")
	raced := false
	b.after = func(at uint16, cmd []string) error {
		if at == s.home && cmd[0] == "SET" && strings.HasSuffix(cmd[1], stampSuffix) && !raced {
			raced = true
			number := readOne(t, s, s.home).number() + 10
			for _, slot := range s.slots.list {
				put(t, s, b.Backend, slot, number, "theirs")
			}
		}
		return nil
	}
	if err := s.Publish(t.Context(), []string{"ours"}); err != nil || !raced {
		t.Fatalf("got %v, raced %v", err, raced)
	}
	wantEverywhere(t, s, "theirs")
}

// When the home slot's master failed over and lost its last writes, other slots
// hold higher numbers than it gives. The next write ends with all slots alike.
func TestWriteOvertakesNumbersThatHomeLost(t *testing.T) {
	for op, c := range map[string]struct {
		write func(ctx context.Context, s *Set) error
		want  []string
	}{
		"publish":       {func(ctx context.Context, s *Set) error { return s.Publish(ctx, []string{"new"}) }, []string{"new"}},
		"publish empty": {func(ctx context.Context, s *Set) error { return s.Publish(ctx, nil) }, nil},
		"add":           {func(ctx context.Context, s *Set) error { return s.Add(ctx, "new") }, []string{"a", "new"}},
		"clear":         {func(ctx context.Context, s *Set) error { return s.Clear(ctx) }, []string{"(cleared)"}},
	} {
		t.Run(strings.ReplaceAll(op, " ", "-"), func(t *testing.T) {
			b := memory.New()
			var seen []Progress
			s := newFew(t, b, Options{Progress: func(p Progress) { seen = append(seen, p) }})
			publish(t, s, "a")
			seen = nil
			ahead := readOne(t, s, s.home).number() + 3600e6 // an hour
			for i := range 9 {
				put(t, s, b, s.otherSlot(i*7), ahead+int64(i), "lost")
			}
			if err := c.write(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if op == "clear" {
				wantCleared(t, s)
			} else {
				wantEverywhere(t, s, c.want...)
			}
			if number := readOne(t, s, s.home).number(); number <= ahead+8 {
				t.Errorf("the number is %d, want one above %d", number, ahead+8)
			}
			wantProgress(t, seen)
		})
	}
}

// The repair after a failover reads home and writes it again above the lost
// numbers. A write that takes home in between is not lost to it.
func TestOvertakingKeepsARacingWrite(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{})
	publish(t, s, "a")
	ahead := readOne(t, s, s.home).number() + 3600e6
	put(t, s, b, s.otherSlot(5), ahead, "lost")
	asked := 0
	b.before = func(at uint16, cmd []string) error {
		if cmd[0] == "TIME" {
			if asked++; asked == 2 { // the repair is about to take its number
				put(t, s, b.Backend, s.home, ahead+1, "racing")
			}
		}
		return nil
	}
	if err := s.Publish(t.Context(), []string{"b"}); err != nil {
		t.Fatal(err)
	}
	if got := readOne(t, s, s.home); asked < 2 || got.members != "racing" || got.number() != ahead+1 {
		t.Errorf("home holds %q under %d after %d numbers were asked for, want the racing write", got.members, got.number(), asked)
	}
}

// If the racing write is itself below the lost numbers, it is what is repaired to.
func TestOvertakingRepairsToTheRacingWrite(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{})
	publish(t, s, "a")
	home := readOne(t, s, s.home).number()
	ahead := home + 3600e6
	put(t, s, b, s.otherSlot(5), ahead, "lost")
	asked := 0
	b.before = func(at uint16, cmd []string) error {
		if cmd[0] == "TIME" {
			if asked++; asked == 2 {
				put(t, s, b.Backend, s.home, home+1800e6, "racing")
			}
		}
		return nil
	}
	if err := s.Publish(t.Context(), []string{"b"}); err != nil {
		t.Fatal(err)
	}
	wantEverywhere(t, s, "racing")
}

// Clear leaves its number: a write that began before it and lands late is
// refused.
func TestLateWriteIsRefusedAfterClear(t *testing.T) {
	b := memory.New()
	s := newFew(t, b, Options{})
	publish(t, s, "a")
	late := change{op: "publish", kind: replace, add: []string{"late"}, count: 1, digest: digestOf([]string{"late"}),
		number: readOne(t, s, s.home).number() + 1, before: stampOf(t, s, s.home)}
	if err := s.Clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.noEval.set()
	l := newLadder(s)
	defer l.end(t.Context())
	slots := s.slots.but(s.home)
	for i, err := range l.node(&late, "x").step(t.Context(), slots) {
		var newer newerError
		if !errors.As(err, &newer) {
			t.Errorf("slot %d: got %v, want newerError", slots[i], err)
		}
	}
	wantCleared(t, s)
}

func stampOf(t *testing.T, s *Set, slot uint16) stamp {
	t.Helper()
	st, ok := parseStamp(readOne(t, s, slot).stamp)
	if !ok {
		t.Fatalf("slot %d has no stamp", slot)
	}
	return st
}

// The same change applied twice is one change.
func TestChangesAreIdempotent(t *testing.T) {
	b := memory.New()
	s := newFew(t, b, Options{})
	publish(t, s, "a", "b")
	before := stampOf(t, s, s.home)
	s.noEval.set()
	for _, c := range []change{
		{op: "add", kind: delta, add: []string{"c"}, remove: []string{"a"}},
		{op: "publish", kind: replace, add: []string{"x"}, count: 1, digest: digestOf([]string{"x"})},
		{op: "clear", kind: clearing, count: cleared},
	} {
		l := newLadder(s)
		if err := l.home(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		if c.before != before {
			t.Errorf("%s: builds on %v, want %v", c.op, c.before, before)
		}
		before = c.stamp()
		slots := s.slots.but(s.home)
		var once, twice string
		for _, after := range []*string{&once, &twice} {
			for i, err := range l.node(&c, "x").step(t.Context(), slots) {
				if err != nil {
					t.Errorf("%s: slot %d: %v", c.op, slots[i], err)
				}
			}
			for slot, r := range readAll(t, s) {
				if r.stamp != readOne(t, s, s.home).stamp {
					t.Errorf("%s: slot %d has the stamp %q", c.op, slot, r.stamp)
				}
			}
			*after = readOne(t, s, slots[3]).members
		}
		if once != twice {
			t.Errorf("%s: %q after one time, %q after two", c.op, once, twice)
		}
		l.end(t.Context())
	}
}

// Lost replies: the write took effect and the writer cannot know. It tries
// again, and the result is the same.
func TestLostRepliesChangeNothing(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{})
	lost := errors.New("read tcp 127.0.0.1:7000: connection reset by peer")
	var lose func(uint16) error
	b.after = func(at uint16, cmd []string) error {
		if lose != nil && cmd[0] == "SET" && strings.HasSuffix(cmd[1], stampSuffix) {
			return lose(at)
		}
		return nil
	}
	lossy := func(name string, write func() error) {
		t.Helper()
		lose = eachSlot(2, lost)
		if err := write(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		lose = nil
	}
	lossy("publish", func() error { return s.Publish(t.Context(), []string{"a", "b"}) })
	wantEverywhere(t, s, "a", "b")
	lossy("add", func() error { return s.Add(t.Context(), "c") })
	wantEverywhere(t, s, "a", "b", "c")
	lossy("remove", func() error { return s.Remove(t.Context(), "a", "z") })
	wantEverywhere(t, s, "b", "c")
	lossy("apply", func() error { return s.Apply(t.Context(), Delta{Add: []string{"d"}, Remove: []string{"b"}}) })
	wantEverywhere(t, s, "c", "d")
	lossy("clear", func() error { return s.Clear(t.Context()) })
	wantCleared(t, s)
}
