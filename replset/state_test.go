package replset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// replica is what stands at a replica's place, read in one step.
type replica struct {
	stamp   string
	members string // sorted, joined
	foreign bool   // no set
}

func (r replica) number() int64 {
	st, _ := parseStamp(r.stamp)
	return st.number
}

// readAll reads every replica and its stamp.
func readAll(t *testing.T, s *Set) map[uint16]replica {
	t.Helper()
	all := make(map[uint16]replica, len(s.slots.list))
	for _, slot := range s.slots.list {
		all[slot] = readOne(t, s, slot)
	}
	return all
}

func readOne(t *testing.T, s *Set, slot uint16) replica {
	t.Helper()
	key := s.replicaKey(slot)
	list, err := s.backend.Tx(context.Background(), key, [][]string{{"GET", key + stampSuffix}, {"SMEMBERS", key}})
	if err != nil {
		t.Fatal(err)
	}
	var r replica
	r.stamp, _ = list[0].(string)
	members, err := asStrings(list[1])
	r.foreign = err != nil
	slices.Sort(members)
	r.members = strings.Join(members, " ")
	return r
}

// wantEverywhere checks that every replica holds the members, under the home
// replica's number, and that its stamp describes it.
func wantEverywhere(t *testing.T, s *Set, members ...string) {
	t.Helper()
	want := slices.Clone(members)
	slices.Sort(want)
	all := readAll(t, s)
	home := all[s.home]
	wrong := 0
	for _, slot := range s.slots.list {
		r := all[slot]
		st, ok := parseStamp(r.stamp)
		switch {
		case !ok, r.members != strings.Join(want, " "), r.stamp != home.stamp,
			st.count != len(want), st.digest != digestOf(want):
			if wrong++; wrong <= 3 {
				t.Errorf("slot %d holds %q under %q, want %q under the home slot's %q", slot, r.members, r.stamp, strings.Join(want, " "), home.stamp)
			}
		}
	}
	if wrong > 3 {
		t.Errorf("... and %d slots more", wrong-3)
	}
}

// wantCleared checks that no replica stands, and that each slot keeps the number.
func wantCleared(t *testing.T, s *Set) {
	t.Helper()
	all := readAll(t, s)
	for _, slot := range s.slots.list {
		r := all[slot]
		if st, ok := parseStamp(r.stamp); !ok || st.count != cleared || r.members != "" {
			t.Errorf("slot %d holds %q under %q, want a cleared stamp alone", slot, r.members, r.stamp)
			return
		}
	}
}

// failedSlots are the slots that a write's error names.
func failedSlots(e *WriteError) string {
	var slots []string
	for _, f := range e.Failed {
		slots = append(slots, fmt.Sprint(f.Slot))
	}
	return strings.Join(slots, " ")
}
