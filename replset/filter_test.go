package replset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shardkit/shardkit/replset/memory"
)

func TestFilter(t *testing.T) {
	b := memory.New()
	const key = "subs:{1}"
	sets := map[string]*Set{}
	for name, members := range map[string][]string{"active": {"a", "b", "c"}, "eu": {"b", "c", "d"}, "blocked": {"c"}, "none": {}} {
		s, err := New(b, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		place(t, s, members, key)
		sets[name] = s
	}
	missing, _ := New(b, "missing", nil)
	do(t, b, "SADD", key, "a", "b", "c", "d", "e")
	of := func(names ...string) (list []*Set) {
		for _, name := range names {
			list = append(list, sets[name])
		}
		return list
	}
	for _, c := range []struct {
		in, notIn []*Set
		want      string
	}{
		{of("active"), nil, "a b c"},
		{of("active", "eu"), nil, "b c"},
		{of("active", "eu"), of("blocked"), "b"},
		{of("active"), of("eu", "blocked"), "a"},
		{nil, of("blocked"), "a b d e"},
		{nil, of("active", "eu"), "e"},
		{of("active", "none"), nil, ""},
		{of("active"), of("none"), "a b c"},
		{of("active"), of("active"), ""},
	} {
		got, err := Filter(t.Context(), key, c.in, c.notIn)
		slices.Sort(got)
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("in %d, not in %d: got %q, %v, want %q", len(c.in), len(c.notIn), got, err, c.want)
		}
	}
	for name, list := range map[string][2][]*Set{
		"missing in":      {of("active"), nil},
		"missing not in":  {of("active"), nil},
		"missing, blocks": {nil, nil},
	} {
		in, notIn := list[0], list[1]
		if name == "missing in" {
			in = append(in, missing)
		} else {
			notIn = append(notIn, missing)
		}
		if got, err := Filter(t.Context(), key, in, notIn); !errors.Is(err, ErrReplicaMissing) || !strings.Contains(err.Error(), `"missing"`) {
			t.Errorf("%s: got %q, %v, want ErrReplicaMissing that names the set", name, got, err)
		}
	}
	other, _ := New(memory.New(), "other", nil)
	for name, list := range map[string][]*Set{"none": nil, "nil": {nil}, "another backend": {sets["active"], other}} {
		if _, err := Filter(t.Context(), key, list, nil); err == nil || !strings.HasPrefix(err.Error(), "replset: filter: ") {
			t.Errorf("%s: got %v, want an error", name, err)
		}
	}
}

// A struct with a func in it cannot be compared, and is a backend all the same.
func TestFilterOverABackendThatCannotBeCompared(t *testing.T) {
	type hooked struct {
		Backend
		hook func()
	}
	b := hooked{memory.New(), func() {}}
	const key = "subs:{1}"
	var sets []*Set
	for _, name := range []string{"active", "eu"} {
		s, err := New(b, name, nil)
		if err != nil {
			t.Fatal(err)
		}
		place(t, s, []string{"a", "b"}, key)
		sets = append(sets, s)
	}
	do(t, b, "SADD", key, "b", "x")
	if got, err := Filter(t.Context(), key, sets, nil); err != nil || fmt.Sprint(got) != "[b]" {
		t.Errorf("got %v, %v, want [b]", got, err)
	}
	other, err := New(memory.New(), "active", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Filter(t.Context(), key, append(sets, other), nil); err == nil {
		t.Errorf("over two backends: got %v and no error", got)
	}
}

func TestContainsMany(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{})
	var members, candidates []string
	for i := range 2500 {
		candidates = append(candidates, fmt.Sprint(i))
		if i%3 == 0 {
			members = append(members, fmt.Sprint(i))
		}
	}
	publish(t, s, members...)
	var mu sync.Mutex
	slots := map[uint16]bool{}
	b.before = func(slot uint16, cmd []string) error {
		mu.Lock()
		defer mu.Unlock()
		if cmd[0] == "SMISMEMBER" {
			slots[slot] = true
			if len(cmd) > 2+manyChunk {
				t.Errorf("%d candidates in one command", len(cmd)-2)
			}
		}
		return nil
	}
	in, err := s.ContainsMany(t.Context(), candidates)
	if err != nil || len(in) != len(candidates) {
		t.Fatalf("got %d answers, %v", len(in), err)
	}
	for i := range in {
		if in[i] != (i%3 == 0) {
			t.Fatalf("candidate %d: got %v", i, in[i])
		}
	}
	if len(slots) < 3 {
		t.Errorf("2500 candidates were asked for in %d slots, want several", len(slots))
	}
	if in, err := s.ContainsMany(t.Context(), nil); len(in) != 0 || err != nil {
		t.Errorf("no candidate: got %v, %v", in, err)
	}
	for _, slot := range s.slots.list {
		do(t, b.Backend, "DEL", s.replicaKey(slot))
	}
	if _, err := s.ContainsMany(t.Context(), candidates); !errors.Is(err, ErrReplicaMissing) {
		t.Errorf("over missing replicas: got %v, want ErrReplicaMissing", err)
	}
}

// A set that would take too much is refused before anything is written.
func TestTooLargeIsRefusedUnwritten(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{MaxBytes: 64 << 10})
	publish(t, s, "a")
	writes := 0
	b.before = func(_ uint16, cmd []string) error {
		if slices.Contains([]string{"SADD", "SET", "DEL"}, cmd[0]) {
			writes++
		}
		return nil
	}
	large := []string{strings.Repeat("x", 4000)}
	err := s.Publish(t.Context(), large)
	var e *TooLargeError
	if !errors.As(err, &e) || e.Limit != 64<<10 || e.Footprint.Members != 1 || e.Footprint.Masters <= e.Limit ||
		!strings.Contains(err.Error(), "Options.MaxBytes") {
		t.Errorf("got %v, want a *TooLargeError that says what to do", err)
	}
	if writes != 0 {
		t.Errorf("%d writing commands were sent", writes)
	}
	b.before = nil
	wantEverywhere(t, s, "a")
	unbound := newFew(t, b, Options{MaxBytes: -1})
	publish(t, unbound, large...)
}
