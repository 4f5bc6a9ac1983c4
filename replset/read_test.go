package replset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/slotmap"
)

// published is a set {a b c d} with sharded sets in a few slots.
func published(t *testing.T) (*Set, Backend) {
	t.Helper()
	b := memory.New()
	s := newSet(t, b, nil)
	place(t, s, []string{"a", "b", "c", "d"}, "{1}", "{2}", "{3}", "{9}", "")
	do(t, b, "SADD", "subs:{1}", "a", "c", "x")
	do(t, b, "SADD", "extra:{1}", "a", "x", "y")
	do(t, b, "SADD", "subs:{2}", "y")
	do(t, b, "SET", "text:{1}", "v")
	return s, b
}

func TestReads(t *testing.T) {
	s, _ := published(t)
	ctx := context.Background()
	list := func(members []string, err error) string {
		slices.Sort(members)
		return fmt.Sprintf("%q %v", members, err)
	}
	for _, c := range []struct{ name, got, want string }{
		{"Intersect", list(s.Intersect(ctx, "subs:{1}")), `["a" "c"] <nil>`},
		{"Intersect with an extra key", list(s.Intersect(ctx, "subs:{1}", "extra:{1}")), `["a"] <nil>`},
		{"Intersect with a missing extra key", list(s.Intersect(ctx, "subs:{1}", "none:{1}")), `[] <nil>`},
		{"Intersect of nothing in common", list(s.Intersect(ctx, "subs:{2}")), `[] <nil>`},
		{"Intersect of a missing key", list(s.Intersect(ctx, "subs:{3}")), `[] <nil>`},
		{"Without", list(s.Without(ctx, "subs:{1}")), `["x"] <nil>`},
		{"Without a missing key", list(s.Without(ctx, "subs:{3}")), `[] <nil>`},
		{"Members", list(s.Members(ctx, "subs:{3}")), `["a" "b" "c" "d"] <nil>`},
		{"Members near the empty key", list(s.Members(ctx, "")), `["a" "b" "c" "d"] <nil>`},
		{"Count", fmt.Sprint(s.Count(ctx, "subs:{1}", 0)), "2 <nil>"},
		{"Count with a limit", fmt.Sprint(s.Count(ctx, "subs:{1}", 1)), "1 <nil>"},
		{"Count with a limit never reached", fmt.Sprint(s.Count(ctx, "subs:{1}", 100)), "2 <nil>"},
		{"Count of a missing key", fmt.Sprint(s.Count(ctx, "subs:{3}", 0)), "0 <nil>"},
		{"Len", fmt.Sprint(s.Len(ctx, "subs:{9}")), "4 <nil>"},
		{"Contains", fmt.Sprint(s.Contains(ctx, "subs:{9}", "a")), "true <nil>"},
		{"Contains not", fmt.Sprint(s.Contains(ctx, "subs:{9}", "x")), "false <nil>"},
		{"ContainsEach", fmt.Sprint(s.ContainsEach(ctx, "subs:{9}", "a", "x", "a", "")), "[true false true false] <nil>"},
		{"ContainsEach of none", fmt.Sprint(s.ContainsEach(ctx, "subs:{9}")), "[] <nil>"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, c.got, c.want)
		}
	}
}

func TestEveryReadIsOneRoundTrip(t *testing.T) {
	b := newHooks()
	s := newSet(t, b, nil)
	place(t, s, []string{"a"}, "{1}")
	for name, read := range reads(s, "subs:{1}") {
		b.calls.Store(0)
		trips := 0
		counted := &countTx{Backend: b, trips: &trips}
		s.backend = counted
		if err := read(context.Background()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if trips != 1 {
			t.Errorf("%s: %d round trips, want 1", name, trips)
		}
		s.backend = b
	}
}

type countTx struct {
	Backend
	trips *int
}

func (c *countTx) Do(ctx context.Context, key string, cmd []string) (any, error) {
	*c.trips++
	return c.Backend.Do(ctx, key, cmd)
}

func (c *countTx) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	*c.trips++
	return c.Backend.Tx(ctx, key, cmds)
}

// reads is every read near key but IntersectInto, which writes.
func reads(s *Set, key string) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"intersect": func(ctx context.Context) error { _, err := s.Intersect(ctx, key); return err },
		"without":   func(ctx context.Context) error { _, err := s.Without(ctx, key); return err },
		"count":     func(ctx context.Context) error { _, err := s.Count(ctx, key, 0); return err },
		"members":   func(ctx context.Context) error { _, err := s.Members(ctx, key); return err },
		"contains":  func(ctx context.Context) error { _, err := s.Contains(ctx, key, "a"); return err },
		"len":       func(ctx context.Context) error { _, err := s.Len(ctx, key); return err },
	}
}

func allReads(s *Set, key string) map[string]func(context.Context) error {
	all := reads(s, key)
	all["intersect into"] = func(ctx context.Context) error {
		_, err := s.IntersectInto(ctx, "dest:{"+slotmap.HashTag(key)+"}", key)
		return err
	}
	return all
}

// A missing replica is never an empty answer, whatever is missing of it and
// whichever read asks.
func TestMissingIsNotEmpty(t *testing.T) {
	const key = "subs:{1}"
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, s *Set, b Backend)
		want  error
	}{
		{"never published", func(*testing.T, *Set, Backend) {}, ErrReplicaMissing},
		{"cleared", func(t *testing.T, s *Set, b Backend) {
			publish(t, s, "a", "b")
			if err := s.Clear(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, ErrReplicaMissing},
		{"replica deleted", func(t *testing.T, s *Set, b Backend) {
			place(t, s, []string{"a", "b"}, key)
			do(t, b, "DEL", s.KeyFor(key))
		}, ErrReplicaMissing},
		{"stamp deleted", func(t *testing.T, s *Set, b Backend) {
			place(t, s, []string{"a", "b"}, key)
			do(t, b, "DEL", s.KeyFor(key)+stampSuffix)
		}, ErrReplicaMissing},
		{"both deleted", func(t *testing.T, s *Set, b Backend) {
			place(t, s, []string{"a", "b"}, key)
			do(t, b, "DEL", s.KeyFor(key), s.KeyFor(key)+stampSuffix)
		}, ErrReplicaMissing},
		{"a set of someone else", func(t *testing.T, s *Set, b Backend) {
			do(t, b, "SADD", s.KeyFor(key), "a")
		}, ErrReplicaMissing},
		{"a member lost", func(t *testing.T, s *Set, b Backend) {
			place(t, s, []string{"a", "b"}, key)
			do(t, b, "SREM", s.KeyFor(key), "a")
		}, ErrReplicaDrifted},
		{"a member more", func(t *testing.T, s *Set, b Backend) {
			place(t, s, []string{"a", "b"}, key)
			do(t, b, "SADD", s.KeyFor(key), "x")
		}, ErrReplicaDrifted},
		{"a member where none was published", func(t *testing.T, s *Set, b Backend) {
			place(t, s, nil, key)
			do(t, b, "SADD", s.KeyFor(key), "x")
		}, ErrReplicaDrifted},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			b := memory.New()
			s := newSet(t, b, &Options{Slots: []uint16{slotmap.Slot(key)}})
			c.spoil(t, s, b)
			do(t, b, "SADD", key, "a", "z")
			do(t, b, "SET", "dest:{1}", "kept")
			for name, read := range allReads(s, key) {
				err := read(context.Background())
				var slot *SlotError
				if !errors.Is(err, c.want) || !errors.As(err, &slot) {
					t.Errorf("%s: got %v, want a *SlotError with %v", name, err, c.want)
					continue
				}
				if slot.Slot != slotmap.Slot(key) || slot.Op != name {
					t.Errorf("%s: the error names slot %d and %q, want %d", name, slot.Slot, slot.Op, slotmap.Slot(key))
				}
				if !strings.HasPrefix(err.Error(), "replset: "+name+": slot ") || strings.Count(err.Error(), "replset:") != 1 {
					t.Errorf("%s: the message is %q", name, err)
				}
			}
			if got := do(t, b, "GET", "dest:{1}"); got != "kept" {
				t.Errorf("IntersectInto touched its destination: %v", got)
			}
		})
	}
}

func TestPublishedEmptySetAnswers(t *testing.T) {
	b := memory.New()
	s := newSet(t, b, nil)
	publish(t, s)
	do(t, b, "SADD", "subs:{1}", "a")
	for name, read := range allReads(s, "subs:{1}") {
		if err := read(context.Background()); err != nil {
			t.Errorf("%s of a published empty set: %v", name, err)
		}
	}
	got, err := s.Without(t.Context(), "subs:{1}")
	if err != nil || !slices.Equal(got, []string{"a"}) {
		t.Errorf("Without over a published empty set: %v, %v", got, err)
	}
	wantEverywhere(t, s)
}

func TestIntersectInto(t *testing.T) {
	s, b := published(t)
	for _, c := range []struct {
		name, dest, key string
		extra           []string
		want            []string
	}{
		{"new key", "new:{1}", "subs:{1}", nil, []string{"a", "c"}},
		{"extra", "new2:{1}", "subs:{1}", []string{"extra:{1}"}, []string{"a"}},
		{"over a string", "text:{1}", "subs:{1}", nil, []string{"a", "c"}},
		{"onto its own operand", "subs:{1}", "subs:{1}", nil, []string{"a", "c"}},
		{"empty deletes", "extra:{1}", "none:{1}", nil, nil},
	} {
		n, err := s.IntersectInto(t.Context(), c.dest, c.key, c.extra...)
		if err != nil || n != len(c.want) {
			t.Errorf("%s: got %d, %v, want %d", c.name, n, err, len(c.want))
			continue
		}
		got, err := asStrings(do(t, b, "SMEMBERS", c.dest))
		slices.Sort(got)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: stored %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	if got := do(t, b, "EXISTS", "extra:{1}"); got != int64(0) {
		t.Errorf("an empty result left its destination there")
	}
}

// The result of the detour by a temporary key is told only if it took effect.
func TestIntersectIntoTellsThatTheRenameFailed(t *testing.T) {
	b := newHooks()
	s := newSet(t, b, nil)
	place(t, s, []string{"a"}, "{1}")
	do(t, b, "SADD", "subs:{1}", "a")
	b.before = func(slot uint16, cmd []string) error {
		if cmd[0] == "PERSIST" { // the temporary key's ten seconds are over
			do(t, b.Backend, "DEL", cmd[1])
		}
		return nil
	}
	if n, err := s.IntersectInto(t.Context(), "dest:{1}", "subs:{1}"); err == nil {
		t.Errorf("got %d and no error, but the destination was not written", n)
	}
}

func TestIntersectIntoLeavesNoTemporaryKey(t *testing.T) {
	b := newHooks()
	var tmp []string
	b.before = func(_ uint16, cmd []string) error {
		if cmd[0] == "SINTERSTORE" {
			tmp = append(tmp, cmd[1])
		}
		return nil
	}
	s := newSet(t, b, nil)
	do(t, b, "SADD", "subs:{1}", "a")
	if _, err := s.IntersectInto(t.Context(), "dest:{1}", "subs:{1}"); !errors.Is(err, ErrReplicaMissing) {
		t.Fatal(err)
	}
	place(t, s, []string{"a"}, "{1}")
	for range 3 {
		if _, err := s.IntersectInto(t.Context(), "dest:{1}", "subs:{1}"); err != nil {
			t.Fatal(err)
		}
	}
	if len(tmp) != 4 {
		t.Fatalf("saw the temporary keys %q, want 4", tmp)
	}
	for _, key := range tmp {
		if do(t, b, "EXISTS", key) != int64(0) {
			t.Errorf("%q stands", key)
		}
	}
}

func TestReadsAcrossSlotsAreRefusedUnsent(t *testing.T) {
	b := newHooks()
	s := newSet(t, b, nil)
	for name, read := range map[string]func() error{
		"intersect": func() error { _, err := s.Intersect(t.Context(), "subs:{1}", "subs:{2}"); return err },
		"into":      func() error { _, err := s.IntersectInto(t.Context(), "dest:{2}", "subs:{1}"); return err },
		"into, extra": func() error {
			_, err := s.IntersectInto(t.Context(), "dest:{1}", "subs:{1}", "subs:{2}")
			return err
		},
	} {
		var cross *slotmap.CrossSlotError
		if err := read(); !errors.As(err, &cross) || !strings.HasPrefix(err.Error(), "replset: ") {
			t.Errorf("%s: got %v, want a *slotmap.CrossSlotError", name, err)
		}
	}
	if n := b.calls.Load(); n != 0 {
		t.Errorf("%d commands were sent, want none", n)
	}
}

func TestNegativeLimitIsRefused(t *testing.T) {
	b := newHooks()
	s := newSet(t, b, nil)
	if _, err := s.Count(t.Context(), "subs:{1}", -1); err == nil || !strings.Contains(err.Error(), "-1") {
		t.Errorf("got %v, want an error that names the limit", err)
	}
	if n := b.calls.Load(); n != 0 {
		t.Errorf("%d commands were sent, want none", n)
	}
}

// A key of the caller's that is no set is the server's error, not a verdict on
// the replica.
func TestWrongTypeOfTheCallersKey(t *testing.T) {
	s, b := published(t)
	do(t, b, "SET", "text:{1}", "v")
	for _, err := range []error{
		func() error { _, err := s.Intersect(t.Context(), "text:{1}"); return err }(),
		func() error { _, err := s.Count(t.Context(), "text:{1}", 0); return err }(),
		func() error { _, err := s.Without(t.Context(), "text:{1}"); return err }(),
		func() error { _, err := s.IntersectInto(t.Context(), "dest:{1}", "text:{1}"); return err }(),
	} {
		var foreign *ForeignKeyError
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || errors.As(err, &foreign) {
			t.Errorf("got %v, want the server's WRONGTYPE", err)
		}
	}
}

// What the server says in passing is waited out, for ReadPatience.
func TestReadsWaitOutPassingErrors(t *testing.T) {
	for _, passing := range []error{
		serverError("TRYAGAIN Multiple keys request during rehashing of slot"),
		serverError("CLUSTERDOWN The cluster is down"),
		serverError("LOADING Redis is loading the dataset in memory"),
		serverError("MASTERDOWN Link with MASTER is down"),
		serverError("MOVED 1 127.0.0.1:7000"),
		serverError("ASK 1 127.0.0.1:7000"),
		errors.New("dial tcp 127.0.0.1:7000: connect: connection refused"),
		fmt.Errorf("read tcp: i/o timeout: %w", context.DeadlineExceeded), // the client's own time-out
	} {
		b := newHooks()
		s := newSet(t, b, nil)
		place(t, s, []string{"a"}, "{1}")
		fail := times(3, passing)
		b.before = func(_ uint16, cmd []string) error {
			if cmd[0] == "SCARD" {
				return fail()
			}
			return nil
		}
		if n, err := s.Len(t.Context(), "subs:{1}"); n != 1 || err != nil {
			t.Errorf("after three times %q: got %d, %v, want 1", passing, n, err)
		}
	}
}

func TestReadsDoNotRepeatWhatIsFinal(t *testing.T) {
	for _, final := range []error{
		serverError("CROSSSLOT Keys in request don't hash to the same slot"),
		serverError("NOPERM this user has no permissions to run the 'scard' command"),
		serverError("ERR unknown command 'sintercard'"),
		serverError("ERR This instance has cluster support disabled"),
	} {
		b := newHooks()
		s := newSet(t, b, nil)
		place(t, s, []string{"a"}, "{1}")
		asked := 0
		b.before = func(_ uint16, cmd []string) error {
			if cmd[0] == "SCARD" {
				asked++
				return final
			}
			return nil
		}
		_, err := s.Len(t.Context(), "subs:{1}")
		if !errors.Is(err, final) || asked != 1 {
			t.Errorf("%q: got %v after %d tries, want it after one", final, err, asked)
		}
	}
}

func TestErrorsAreExplained(t *testing.T) {
	for text, want := range map[string]error{
		"ERR This instance has cluster support disabled": ErrNotCluster,
		"ERR unknown command 'SINTERCARD', with args":    ErrTooOld,
		"CLUSTERDOWN Hash slot not served":               ErrNoOwner,
	} {
		b := newHooks()
		s := newSet(t, b, &Options{ReadPatience: 1})
		b.before = func(uint16, []string) error { return serverError(text) }
		_, err := s.Len(t.Context(), "subs:{1}")
		var original serverError
		if !errors.Is(err, want) || !errors.As(err, &original) || string(original) != text {
			t.Errorf("%q: got %v, want %v with the server's error beneath", text, err, want)
		}
	}
}

// A backend that breaks its contract is told at once, not after patience.
func TestReplyOfTheWrongShape(t *testing.T) {
	start := time.Now()
	defer func() {
		if took := time.Since(start); took > defaultReadPatience {
			t.Errorf("it took %v: wrong replies were asked for again", took)
		}
	}()
	for name, list := range map[string][]any{
		"too few":             {"sk1 1 1 000000000000"},
		"none":                {},
		"a number for a list": {nil, nil, nil},
		"a stamp of ints":     {int64(1), int64(1), int64(1)},
		"a size in words":     {"sk1 1 1 000000000000", "one", int64(1)},
	} {
		s := newSet(t, fixed{list: list}, nil)
		if n, err := s.Len(t.Context(), "x"); !errors.Is(err, errUnexpected) {
			t.Errorf("%s: got %d, %v, want %v", name, n, err, errUnexpected)
		}
	}
	good := func(answer any) Backend { return fixed{list: []any{"sk1 1 1 000000000000", int64(1), answer}} }
	for _, answer := range []any{nil, "x", []any{int64(1)}, []any{nil}, []any{"a", "b", "c"}} {
		if in, err := newSet(t, good(answer), nil).ContainsEach(t.Context(), "x", "m", "n"); !errors.Is(err, errUnexpected) {
			t.Errorf("ContainsEach with %v: got %v, %v, want %v", answer, in, err, errUnexpected)
		}
	}
	for _, answer := range []any{nil, "x", int64(3), []any{int64(1)}} {
		if got, err := newSet(t, good(answer), nil).Members(t.Context(), "x"); !errors.Is(err, errUnexpected) {
			t.Errorf("Members with %v: got %v, %v, want %v", answer, got, err, errUnexpected)
		}
	}
}

// fixed answers every Tx alike.
type fixed struct {
	Backend
	list []any
}

func (f fixed) Tx(context.Context, string, [][]string) ([]any, error) { return f.list, nil }
