package replset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/slotmap"
)

// moving is a backend with slots on the move: what takes several keys is told to
// try again, as long as that lasts; single keys are found where they are.
type moving struct {
	Backend
	between func(cmd []string) // called before each single command
}

const tryAgain = serverError("TRYAGAIN Multiple keys request during rehashing of slot")

func (m *moving) Tx(context.Context, string, [][]string) ([]any, error) { return nil, tryAgain }

func (m *moving) Do(ctx context.Context, key string, cmd []string) (any, error) {
	switch cmd[0] {
	case "SINTER", "SDIFF", "SINTERCARD", "SINTERSTORE", "EVAL", "EVALSHA":
		return nil, tryAgain
	}
	if m.between != nil {
		m.between(cmd)
	}
	return m.Backend.Do(ctx, key, cmd)
}

// While a slot moves, reads answer all the same, from the keys one by one.
func TestReadsOfASlotThatMoves(t *testing.T) {
	s, b := published(t)
	blocked, err := New(b, "blocked", nil)
	if err != nil {
		t.Fatal(err)
	}
	place(t, blocked, []string{"c", "y"}, "{1}", "{2}", "{3}")
	m := &moving{Backend: b}
	s.backend, blocked.backend = m, m
	ctx := context.Background()
	list := func(members []string, err error) string {
		slices.Sort(members)
		return fmt.Sprintf("%q %v", members, err)
	}
	for _, c := range []struct{ name, got, want string }{
		{"Intersect", list(s.Intersect(ctx, "subs:{1}")), `["a" "c"] <nil>`},
		{"Intersect with an extra key", list(s.Intersect(ctx, "subs:{1}", "extra:{1}")), `["a"] <nil>`},
		{"Intersect with a missing extra key", list(s.Intersect(ctx, "subs:{1}", "none:{1}")), `[] <nil>`},
		{"Intersect of a missing key", list(s.Intersect(ctx, "subs:{3}")), `[] <nil>`},
		{"Without", list(s.Without(ctx, "subs:{1}")), `["x"] <nil>`},
		{"Members", list(s.Members(ctx, "subs:{3}")), `["a" "b" "c" "d"] <nil>`},
		{"Count", fmt.Sprint(s.Count(ctx, "subs:{1}", 0)), "2 <nil>"},
		{"Count with a limit", fmt.Sprint(s.Count(ctx, "subs:{1}", 1)), "1 <nil>"},
		{"Len", fmt.Sprint(s.Len(ctx, "subs:{9}")), "4 <nil>"},
		{"Contains", fmt.Sprint(s.Contains(ctx, "subs:{9}", "a")), "true <nil>"},
		{"ContainsEach", fmt.Sprint(s.ContainsEach(ctx, "subs:{9}", "a", "x")), "[true false] <nil>"},
		{"Filter, in and not in", list(Filter(ctx, "subs:{1}", []*Set{s}, []*Set{blocked})), `["a"] <nil>`},
		{"Filter, in both", list(Filter(ctx, "subs:{1}", []*Set{s, blocked}, nil)), `["c"] <nil>`},
		{"Filter, in neither", list(Filter(ctx, "subs:{1}", nil, []*Set{s, blocked})), `["x"] <nil>`},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}
}

func TestMissingIsNotEmptyWhileTheSlotMoves(t *testing.T) {
	const key = "subs:{1}"
	b := memory.New()
	s := newSet(t, b, &Options{Slots: []uint16{slotmap.Slot(key)}})
	m := &moving{Backend: b}
	s.backend = m
	do(t, b, "SADD", key, "a")
	check := func(when string, want error) {
		t.Helper()
		for name, read := range reads(s, key) {
			if err := read(t.Context()); !errors.Is(err, want) {
				t.Errorf("%s: %s: got %v, want %v", when, name, err, want)
			}
		}
	}
	check("never published", ErrReplicaMissing)
	s.backend = b
	place(t, s, nil, key)
	s.backend = m
	check("published empty", nil)
	do(t, b, "SET", s.KeyFor(key)+stampSuffix, "sk1 5 -1 0")
	check("cleared", ErrReplicaMissing)
	do(t, b, "SET", s.KeyFor(key)+stampSuffix, "theirs")
	var foreign *ForeignKeyError
	if _, err := s.Len(t.Context(), key); !errors.As(err, &foreign) {
		t.Errorf("another's key at the stamp's place: %v", err)
	}
}

// A write that comes between reading the stamp and reading the replica is
// noticed, and both are read again.
func TestWriteBetweenTheReadsOfASlotThatMoves(t *testing.T) {
	const key = "subs:{1}"
	s, b := published(t)
	m := &moving{Backend: b}
	s.backend = m
	replica := s.KeyFor(key)
	wrote := 0
	m.between = func(cmd []string) {
		if cmd[0] == "SMEMBERS" && cmd[1] == replica && wrote < 3 {
			wrote++
			member := fmt.Sprint("new", wrote)
			do(t, b, "DEL", replica)
			do(t, b, "SADD", replica, member)
			do(t, b, "SET", replica+stampSuffix, stamp{int64(wrote), 1, digestOf([]string{member})}.String())
		}
	}
	got, err := s.Members(t.Context(), key)
	if err != nil || !slices.Equal(got, []string{"new3"}) || wrote != 3 {
		t.Errorf("got %q, %v after %d writes in between", got, err, wrote)
	}
}

// What cannot be done key by key waits, and says in the end what is going on.
func TestStoringInASlotThatMoves(t *testing.T) {
	s, b := published(t)
	s.backend = &moving{Backend: b}
	s.opts.ReadPatience = 30 * time.Millisecond
	do(t, b, "SET", "dest:{1}", "kept")
	_, err := s.IntersectInto(t.Context(), "dest:{1}", "subs:{1}")
	if !errors.Is(err, ErrSlotMoving) || !errors.Is(err, tryAgain) {
		t.Errorf("got %v, want ErrSlotMoving over the server's own", err)
	}
	if do(t, b, "GET", "dest:{1}") != "kept" {
		t.Error("the destination was changed")
	}
}
