package integration

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// replica is what stands in one slot: the set, and the stamp beside it.
type replica struct {
	number  int64
	count   int    // as the stamp says; -1 is a cleared set
	text    string // the whole stamp but its number
	members []string
}

const stampSuffix = ":stamp"

// readAll reads the replicas in the slots past the set's own code, each in one
// step with its stamp.
func readAll(t *testing.T, b replset.Backend, name string, slots []uint16) map[uint16]replica {
	t.Helper()
	replicas := make(map[uint16]replica, len(slots))
	for chunk := range slices.Chunk(slots, 512) {
		keys, cmds := make([]string, 0, 2*len(chunk)), make([][]string, 0, 2*len(chunk))
		for _, slot := range chunk {
			key := slotmap.KeyForSlot(name, slot)
			keys = append(keys, key, key)
			cmds = append(cmds, []string{"GET", key + stampSuffix}, []string{"SMEMBERS", key})
		}
		var replies []any
		within(t, time.Minute, "the replicas are read", func() bool {
			replies = b.Pipeline(context.Background(), keys, cmds)
			return !slices.ContainsFunc(replies, func(v any) bool { _, failed := v.(error); return failed })
		})
		for i, slot := range chunk {
			r, err := parseReplica(replies[2*i], replies[2*i+1])
			if err != nil {
				t.Fatalf("slot %d: %v", slot, err)
			}
			replicas[slot] = r
		}
	}
	return replicas
}

func parseReplica(stamp, members any) (replica, error) {
	r := replica{count: -1}
	for _, v := range []any{stamp, members} {
		if err, failed := v.(error); failed {
			return r, err
		}
	}
	for _, m := range members.([]any) {
		r.members = append(r.members, m.(string))
	}
	slices.Sort(r.members)
	if stamp == nil {
		return r, nil
	}
	words := strings.Fields(stamp.(string))
	if len(words) != 4 || words[0] != "sk1" {
		return r, fmt.Errorf("the stamp is %q", stamp)
	}
	var err1, err2 error
	r.number, err1 = strconv.ParseInt(words[1], 10, 64)
	r.count, err2 = strconv.Atoi(words[2])
	if err1 != nil || err2 != nil {
		return r, fmt.Errorf("the stamp is %q", stamp)
	}
	r.text = strings.Join(words[2:], " ")
	return r, nil
}

// wantReplicas checks that the replicas in the slots hold the members, under one
// number and one stamp.
func wantReplicas(t *testing.T, b replset.Backend, s *replset.Set, slots []uint16, members ...string) {
	t.Helper()
	replicas := readAll(t, b, s.Name(), slots)
	home := readAll(t, b, s.Name(), []uint16{s.HomeSlot()})[s.HomeSlot()]
	want := slices.Sorted(slices.Values(members))
	wrong := 0
	for _, slot := range slots {
		r := replicas[slot]
		if slices.Equal(r.members, want) && r.number == home.number && r.number > 0 && r.count == len(members) && r.text == home.text {
			continue
		}
		if wrong++; wrong <= 3 {
			t.Errorf("slot %d holds %.200s under %d %q, want %.200s under the home slot's %d %q", slot, sorted(r.members), r.number, r.text, sorted(want), home.number, home.text)
		}
	}
	if wrong > 3 {
		t.Errorf("... and %d slots more", wrong-3)
	}
}

// wantCleared checks that no replica stands in the slots.
func wantCleared(t *testing.T, b replset.Backend, s *replset.Set, slots []uint16) {
	t.Helper()
	for slot, r := range readAll(t, b, s.Name(), slots) {
		if r.count != -1 || r.number == 0 || len(r.members) > 0 {
			t.Errorf("slot %d holds %+v, want a cleared stamp alone", slot, r)
			return
		}
	}
}
