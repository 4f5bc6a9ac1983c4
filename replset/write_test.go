package replset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/slotmap"
)

func TestPublishFillsEverySlot(t *testing.T) {
	s := newSet(t, memory.New(), nil)
	publish(t, s, "a", "b", "a", "", "b") // duplicates count once
	wantEverywhere(t, s, "a", "b", "")
	publish(t, s, "c")
	wantEverywhere(t, s, "c")
	if err := s.Add(t.Context(), "d"); err != nil {
		t.Fatal(err)
	}
	wantEverywhere(t, s, "c", "d")
}

func TestWrites(t *testing.T) {
	type step struct {
		name string
		do   func(s *Set) error
		want []string
	}
	ctx := t.Context()
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"deltas", []step{
			{"publish", func(s *Set) error { return s.Publish(ctx, []string{"a", "b"}) }, []string{"a", "b"}},
			{"add", func(s *Set) error { return s.Add(ctx, "c", "d", "c") }, []string{"a", "b", "c", "d"}},
			{"add what is there", func(s *Set) error { return s.Add(ctx, "c", "a") }, []string{"a", "b", "c", "d"}},
			{"remove", func(s *Set) error { return s.Remove(ctx, "a", "a") }, []string{"b", "c", "d"}},
			{"remove what is not there", func(s *Set) error { return s.Remove(ctx, "a", "z") }, []string{"b", "c", "d"}},
			{"apply", func(s *Set) error { return s.Apply(ctx, Delta{Add: []string{"e", "b"}, Remove: []string{"c", "q"}}) }, []string{"b", "d", "e"}},
			{"add nothing", func(s *Set) error { return s.Add(ctx) }, []string{"b", "d", "e"}},
			{"remove nothing", func(s *Set) error { return s.Remove(ctx) }, []string{"b", "d", "e"}},
			{"apply nothing", func(s *Set) error { return s.Apply(ctx, Delta{}) }, []string{"b", "d", "e"}},
		}},
		{"to empty and back", []step{
			{"publish", func(s *Set) error { return s.Publish(ctx, []string{"a", "b"}) }, []string{"a", "b"}},
			{"remove all", func(s *Set) error { return s.Remove(ctx, "a", "b") }, nil},
			{"add to empty", func(s *Set) error { return s.Add(ctx, "c") }, []string{"c"}},
			{"publish empty", func(s *Set) error { return s.Publish(ctx, nil) }, nil},
			{"publish empty again", func(s *Set) error { return s.Publish(ctx, []string{}) }, nil},
			{"remove from empty", func(s *Set) error { return s.Remove(ctx, "a") }, nil},
			{"add to published empty", func(s *Set) error { return s.Add(ctx, "d") }, []string{"d"}},
		}},
		{"any bytes", []step{
			{"publish", func(s *Set) error { return s.Publish(ctx, []string{"", "\x00", "\xff\xfe", "a b", "{x}", "\r\n"}) },
				[]string{"", "\x00", "\xff\xfe", "a b", "{x}", "\r\n"}},
			{"remove", func(s *Set) error { return s.Remove(ctx, "", "\r\n") }, []string{"\x00", "\xff\xfe", "a b", "{x}"}},
		}},
		{"clear and publish", []step{
			{"publish", func(s *Set) error { return s.Publish(ctx, []string{"a"}) }, []string{"a"}},
			{"clear", func(s *Set) error { return s.Clear(ctx) }, []string{"(cleared)"}},
			{"clear again", func(s *Set) error { return s.Clear(ctx) }, []string{"(cleared)"}},
			{"publish", func(s *Set) error { return s.Publish(ctx, []string{"b"}) }, []string{"b"}},
		}},
		{"clear what never was", []step{
			{"clear", func(s *Set) error { return s.Clear(ctx) }, []string{"(cleared)"}},
		}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			s := newFew(t, memory.New(), Options{})
			last := int64(0)
			for _, step := range c.steps {
				if err := step.do(s); err != nil {
					t.Fatalf("%s: %v", step.name, err)
				}
				if slices.Equal(step.want, []string{"(cleared)"}) {
					wantCleared(t, s)
				} else {
					wantEverywhere(t, s, step.want...)
				}
				number := readOne(t, s, s.home).number()
				if idle := strings.HasSuffix(step.name, "nothing"); number < last || number == last && !idle {
					t.Errorf("%s: the number went from %d to %d", step.name, last, number)
				}
				last = number
				if t.Failed() {
					t.Fatalf("after %s", step.name)
				}
			}
		})
	}
}

// A delta to a set that is not there would make a part look like the whole.
func TestDeltaNeedsAPublishedSet(t *testing.T) {
	for _, before := range []string{"never published", "cleared", "lost at home"} {
		b := memory.New()
		s := newFew(t, b, Options{})
		if before != "never published" {
			publish(t, s, "a")
		}
		switch before {
		case "cleared":
			if err := s.Clear(t.Context()); err != nil {
				t.Fatal(err)
			}
		case "lost at home":
			do(t, b, "DEL", s.replicaKey(s.home), s.replicaKey(s.home)+stampSuffix)
		}
		was := readAll(t, s)
		for name, err := range map[string]error{
			"add":    s.Add(t.Context(), "x"),
			"remove": s.Remove(t.Context(), "a"),
			"apply":  s.Apply(t.Context(), Delta{Add: []string{"x"}}),
		} {
			var slot *SlotError
			if !errors.Is(err, ErrReplicaMissing) || !errors.As(err, &slot) || slot.Slot != s.home || slot.Op != name {
				t.Errorf("%s, %s: got %v, want ErrReplicaMissing at the home slot", before, name, err)
			}
		}
		if now := readAll(t, s); fmt.Sprint(now) != fmt.Sprint(was) {
			t.Errorf("%s: a refused delta changed something", before)
		}
	}
}

func TestDeltaRefusesADriftedHome(t *testing.T) {
	b := memory.New()
	s := newFew(t, b, Options{})
	publish(t, s, "a", "b")
	do(t, b, "SREM", s.replicaKey(s.home), "a")
	if err := s.Add(t.Context(), "c"); !errors.Is(err, ErrReplicaDrifted) {
		t.Errorf("got %v, want ErrReplicaDrifted", err)
	}
	publish(t, s, "a", "b") // is the way out
	wantEverywhere(t, s, "a", "b")
}

func TestMemberInBothListsIsRefusedUnsent(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{})
	err := s.Apply(t.Context(), Delta{Add: []string{"a", "b"}, Remove: []string{"c", "b"}})
	if err == nil || !strings.Contains(err.Error(), `"b"`) || !strings.HasPrefix(err.Error(), "replset: ") {
		t.Errorf("got %v, want an error that names the member", err)
	}
	if n := b.calls.Load(); n != 0 {
		t.Errorf("%d commands were sent, want none", n)
	}
}

func TestLargeDeltaIsCheckedInOnePass(t *testing.T) {
	s := newSet(t, memory.New(), &Options{Slots: []uint16{}})
	publish(t, s, "a")
	d := Delta{}
	for i := range 100_000 {
		d.Add = append(d.Add, fmt.Sprint("in", i))
		d.Remove = append(d.Remove, fmt.Sprint("out", i))
	}
	if err := s.Apply(t.Context(), d); err != nil { // minutes, if each were compared with each
		t.Fatal(err)
	}
	if n, err := s.Len(t.Context(), s.name); n != 100_001 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

func TestManyMembers(t *testing.T) {
	s := newSet(t, memory.New(), &Options{Slots: []uint16{1, 8000, 16000}})
	members := make([]string, 100_000)
	for i := range members {
		members[i] = fmt.Sprint("member-", i)
	}
	publish(t, s, append(members, members[:1000]...)...)
	wantEverywhere(t, s, members...)
	if err := s.Remove(t.Context(), members[1:]...); err != nil {
		t.Fatal(err)
	}
	wantEverywhere(t, s, members[0])
}

func TestTheCallersSlicesAreNotChanged(t *testing.T) {
	s := newFew(t, memory.New(), Options{})
	members := append(make([]string, 0, 10), "b", "a", "b")
	room := append(members, "room")
	for name, write := range map[string]func() error{
		"publish": func() error { return s.Publish(t.Context(), members) },
		"add":     func() error { return s.Add(t.Context(), members...) },
		"remove":  func() error { return s.Remove(t.Context(), members...) },
	} {
		if err := s.Publish(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(room, []string{"b", "a", "b", "room"}) {
			t.Errorf("%s left the caller %q", name, room)
		}
	}
}

// A set in some slots only leaves the others alone, and says so to readers.
func TestSlotsOption(t *testing.T) {
	b := memory.New()
	s := newSet(t, b, &Options{Slots: []uint16{5, 5, 9}})
	publish(t, s, "a")
	wantEverywhere(t, s, "a")
	if got := len(s.slots.list); got != 3 {
		t.Errorf("%d slots, want 5, 9 and the home slot", got)
	}
	if do(t, b, "EXISTS", s.replicaKey(6)) != int64(0) {
		t.Error("slot 6 was written")
	}
	if _, err := s.Len(t.Context(), slotmap.KeyForSlot("x", 6)); !errors.Is(err, ErrReplicaMissing) || !strings.Contains(err.Error(), "Options.Slots") {
		t.Errorf("a read in slot 6: %v, want ErrReplicaMissing that names the option", err)
	}
}
