package replset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/slotmap"
)

func TestParseTopology(t *testing.T) {
	master := func(port int64) []any { return []any{"10.0.0.1", port, "id", []any{}} }
	type list = []any
	for _, c := range []struct {
		name  string
		reply any
		want  string // node: slots, of the slots 0, 1, 100, 16383
	}{
		{"three ranges", list{list{int64(0), int64(0), master(1)}, list{int64(1), int64(99), master(2)}, list{int64(100), int64(16383), master(1)}},
			"10.0.0.1:1=[0 100 16383] 10.0.0.1:2=[1]"},
		{"server replicas are passed over", list{list{int64(0), int64(16383), master(1), master(2), master(3)}}, "10.0.0.1:1=[0 1 100 16383]"},
		{"no id", list{list{int64(0), int64(16383), list{"h", int64(1)}}}, "h:1=[0 1 100 16383]"},
		{"unknown host", list{list{int64(0), int64(16383), list{nil, int64(1)}}}, "<nil>:1=[0 1 100 16383]"},
		{"slots without owner", list{list{int64(1), int64(50), master(1)}}, "10.0.0.1:1=[1] orphan=[0 100 16383]"},
		{"no slot has an owner", list{}, "orphan=[0 1 100 16383]"},

		{"nil", nil, "error"},
		{"a string", "OK", "error"},
		{"an element that is no list", list{"x"}, "error"},
		{"an element too short", list{list{int64(0), int64(1)}}, "error"},
		{"a slot that is no number", list{list{"0", int64(1), master(1)}}, "error"},
		{"a last slot that is no number", list{list{int64(0), nil, master(1)}}, "error"},
		{"a negative slot", list{list{int64(-1), int64(1), master(1)}}, "error"},
		{"a slot too high", list{list{int64(0), int64(16384), master(1)}}, "error"},
		{"a range backwards", list{list{int64(5), int64(4), master(1)}}, "error"},
		{"a master that is no list", list{list{int64(0), int64(1), "10.0.0.1"}}, "error"},
		{"a master without port", list{list{int64(0), int64(1), list{"10.0.0.1"}}}, "error"},
	} {
		topo, err := parseTopology(c.reply, []uint16{0, 1, 100, 16383})
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(topo.nodes)) {
			parts = append(parts, fmt.Sprintf("%s=%v", name, topo.nodes[name]))
		}
		if topo.orphan != nil {
			parts = append(parts, fmt.Sprintf("orphan=%v", topo.orphan))
		}
		got := strings.Join(parts, " ")
		if err != nil {
			got = "error"
			if !errors.Is(err, errUnexpected) {
				t.Errorf("%s: the error is %v, want %v", c.name, err, errUnexpected)
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// A malformed reply is told at once; the error of the one node that is down is
// passed over, since another knows as much.
func TestTopologyAsksAnother(t *testing.T) {
	b := newHooks()
	s := newFew(t, b, Options{})
	asked := 0
	b.before = func(_ uint16, cmd []string) error {
		if cmd[0] != "CLUSTER" {
			return nil
		}
		if asked++; asked == 1 {
			return errors.New("dial tcp: connection refused")
		}
		return nil
	}
	publish(t, s, "a")
	if asked != 2 {
		t.Errorf("the topology was asked for %d times, want 2", asked)
	}
	bad := &remapped{Backend: memory.New(), slots: func(any) any { return []any{"x"} }}
	var seen []Progress
	s = newFew(t, bad, Options{Progress: func(p Progress) { seen = append(seen, p) }})
	err := s.Publish(t.Context(), []string{"a"})
	wantProgress(t, seen) // though there was no step
	var partly *WriteError
	if !errors.As(err, &partly) || !errors.Is(err, errUnexpected) || len(partly.Failed) != len(s.slots.list)-1 {
		t.Errorf("a malformed CLUSTER SLOTS: got %v", err)
	}
}

// A stale topology is a hint: wrong owners, or one for all, change no answer.
func TestStaleTopologyChangesNothing(t *testing.T) {
	b := &remapped{Backend: memory.New()}
	s := newFew(t, b, Options{})
	for name, slots := range map[string]func(any) any{
		"one node": func(any) any {
			return []any{[]any{int64(0), int64(slotmap.Slots - 1), []any{"x", int64(1)}}}
		},
		"a node for each slot": func(any) any {
			var list []any
			for slot := range int64(slotmap.Slots) {
				list = append(list, []any{slot, slot, []any{"x", slot}})
			}
			return list
		},
	} {
		b.slots = slots
		publish(t, s, name)
		wantEverywhere(t, s, name)
	}
}
