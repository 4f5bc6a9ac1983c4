package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// Each way in which a replica can differ is told by its name, by scripts and
// without, and Reconcile repairs it and nothing else.
func TestVerifyNamesEachDrift(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		for _, rung := range []int{0, len(rungs) - 1} {
			t.Run(strings.ReplaceAll(rungs[rung].name, " ", "-"), func(t *testing.T) {
				ctx := t.Context()
				slots := some(64)
				s := newSet(t, rungs[rung].wrap(b), replset.Options{Slots: slots})
				home := s.HomeSlot()
				publish(t, s, "a", "b", "c")
				key := func(i int) string { return slotmap.KeyForSlot(s.Name(), slots[i]) }
				older := do(t, b, "GET", key(6)+stampSuffix).(string)
				publish(t, s, "a", "b", "d")
				current := do(t, b, "GET", key(6)+stampSuffix).(string)
				number := strings.Fields(current)[1]
				n, _ := strconv.ParseInt(number, 10, 64)

				do(t, b, "DEL", key(1))                     // lost
				do(t, b, "DEL", key(2), key(2)+stampSuffix) // never there
				do(t, b, "SREM", key(3), "a")               // other members, of the same number
				do(t, b, "SADD", key(3), "z")               //
				do(t, b, "SADD", key(4), "z")               // one more
				do(t, b, "SET", key(5), "text")             // not a set
				do(t, b, "SET", key(6)+stampSuffix, older)  // missed the last write
				do(t, b, "SREM", key(7), "a")               // one less
				want := fmt.Sprint("[", slots[1], " missing ", slots[2], " missing ", slots[3], " content ", slots[4], " extra ",
					slots[5], " type ", slots[6], " older ", slots[7], " content]")
				v, err := s.Verify(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				if got := kinds(v); got != want || v.Checked != len(slots)+extraHome(slots, home) || v.Members != 3 || v.Number != n {
					t.Errorf("Verify: got %s of %+v, want %s", got, v, want)
				}
				if v, err := s.Verify(ctx, &replset.VerifyOptions{Members: []string{"d", "a", "b"}}); err != nil || kinds(v) != want {
					t.Errorf("Verify against the members: got %v, %v, want %s", kinds(v), err, want)
				}
				do(t, b, "PEXPIRE", key(20), "1000000") // lost when a key is written anew
				if _, err := s.Reconcile(ctx, nil); err != nil {
					t.Fatal(err)
				}
				wantReplicas(t, b, s, slots, "a", "b", "d")
				if left := do(t, b, "PTTL", key(20)); left == int64(-1) {
					t.Errorf("Reconcile wrote slot %d, which had not drifted", slots[20])
				}
				if v, err := s.Verify(ctx, nil); err != nil || !v.Consistent() || v.Number != n {
					t.Errorf("after Reconcile: got %+v, %v, want consistent under the same number", v, err)
				}

				// A key that is somebody's is named, and left alone.
				do(t, b, "DEL", key(8)+stampSuffix)
				v, err = s.Reconcile(ctx, nil)
				var partly *replset.WriteError
				var foreign *replset.ForeignKeyError
				if kinds(v) != fmt.Sprint("[", slots[8], " foreign]") || !errors.As(err, &partly) || len(partly.Failed) != 1 || !errors.As(err, &foreign) {
					t.Errorf("a foreign key: got %v, %v", kinds(v), err)
				}
			})
		}
	})
}

// The same members in any order, and in any encoding, are the same set.
func TestVerifyAcceptsAnyOrder(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		slots := some(64)
		s := newSet(t, b, replset.Options{Slots: slots})
		members := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		publish(t, s, members...)
		key := func(i int) string { return slotmap.KeyForSlot(s.Name(), slots[i]) }
		for i := range slots[:40] {
			do(t, b, "DEL", key(i))
			if i%2 == 0 {
				do(t, b, "SADD", key(i), strings.Repeat("long", 50)) // no listpack from here on
			}
			for _, at := range rand.Perm(len(members)) {
				do(t, b, "SADD", key(i), members[at])
			}
			do(t, b, "SREM", key(i), strings.Repeat("long", 50))
		}
		if v, err := s.Verify(t.Context(), nil); err != nil || !v.Consistent() {
			t.Errorf("got %v, %v, want no drift", kinds(v), err)
		}
		for _, i := range []int{3, 4, 50} { // of either encoding, and as published
			do(t, b, "SREM", key(i), "h")
			do(t, b, "SADD", key(i), "H")
		}
		want := fmt.Sprint("[", slots[3], " content ", slots[4], " content ", slots[50], " content]")
		if v, err := s.Verify(t.Context(), nil); err != nil || kinds(v) != want {
			t.Errorf("got %v, %v, want %s", kinds(v), err, want)
		}
	})
}

func extraHome(slots []uint16, home uint16) int {
	for _, s := range slots {
		if s == home {
			return 0
		}
	}
	return 1
}

// kinds lists what drifted, in slot order.
func kinds(v *replset.Verification) string {
	if v == nil {
		return "nothing"
	}
	var list []string
	for _, d := range v.Drifted {
		list = append(list, fmt.Sprint(d.Slot, " ", d.Kind))
	}
	return "[" + strings.Join(list, " ") + "]"
}

// The home replica itself is lost or spoilt, and most others too: what counts is
// what some replica can prove, or else nobody may say.
func TestReconcileFromAProof(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	b := open(t, clients[0].name, c)
	ctx := t.Context()
	slots := some(32)
	s := newSet(t, b, replset.Options{Slots: slots})
	key := func(slot uint16) string { return slotmap.KeyForSlot(s.Name(), slot) }
	spoil := func(slot uint16) {
		do(t, b, "SREM", key(slot), "a")
		do(t, b, "SADD", key(slot), "wrong"+fmt.Sprint(slot%3))
	}
	publish(t, s, "a", "b", "c")
	spoil(s.HomeSlot())
	for _, slot := range slots[:30] { // a majority is wrong, with the right size
		spoil(slot)
	}
	v, err := s.Reconcile(ctx, nil)
	if err != nil || len(v.Drifted) != 30+extraHome(slots[:30], s.HomeSlot()) {
		t.Fatalf("got %v, %v", kinds(v), err)
	}
	wantReplicas(t, b, s, slots, "a", "b", "c")

	do(t, b, "DEL", key(s.HomeSlot()), key(s.HomeSlot())+stampSuffix)
	if _, err := s.Reconcile(ctx, nil); err != nil {
		t.Fatal(err)
	}
	wantReplicas(t, b, s, slots, "a", "b", "c")
	if err := s.Add(ctx, "d"); err != nil {
		t.Errorf("Add after the home replica was repaired: %v", err)
	}
	wantReplicas(t, b, s, slots, "a", "b", "c", "d")

	for _, slot := range append(slots, s.HomeSlot()) {
		spoil(slot)
	}
	if _, err := s.Reconcile(ctx, nil); !errors.Is(err, replset.ErrNoAuthority) {
		t.Errorf("every replica spoilt: got %v, want ErrNoAuthority", err)
	}
	if _, err := s.Reconcile(ctx, []string{"a", "b", "c", "d"}); err != nil {
		t.Errorf("with the members given: %v", err)
	}
	wantReplicas(t, b, s, slots, "a", "b", "c", "d")
	if _, err := s.Reconcile(ctx, []string{"new"}); err != nil {
		t.Errorf("with other members given: %v", err)
	}
	wantReplicas(t, b, s, slots, "new")

	never, err := replset.New(b, name(t)+"never", &replset.Options{Slots: slots})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := never.Verify(ctx, nil); !errors.Is(err, replset.ErrReplicaMissing) {
		t.Errorf("Verify of a set never published: got %v", err)
	}
	if err := s.Clear(ctx); err != nil {
		t.Fatal(err)
	}
	do(t, b, "SADD", key(slots[3]), "x")
	if v, err := s.Verify(ctx, nil); err != nil || kinds(v) != fmt.Sprint("[", slots[3], " extra]") || v.Members != -1 {
		t.Errorf("Verify of a cleared set: got %v, %v", kinds(v), err)
	}
}

// What Footprint foretells is what Publish takes, within 15 %, for each way in
// which a server keeps a set; and what takes too much is refused.
func TestFootprint(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	b := open(t, clients[0].name, c)
	ctx := t.Context()
	slots := some(8192)
	// The first keys ever in a slot cost the server tables of its own.
	warm := newSet(t, b, replset.Options{Slots: slots})
	publish(t, warm, "x")
	for _, tc := range []struct {
		name   string
		member string
		count  int
	}{
		{"20 strings", "member:%06d", 20},
		{"100 strings", "member:%06d", 100},
		{"200 strings", "member:%06d", 200},
		{"200 integers", "%d", 200},
		{"10 strings of 100 B", "%0100d", 10},
	} {
		members := make([]string, tc.count)
		for i := range members {
			members[i] = fmt.Sprintf(tc.member, 100_000+i)
		}
		s, err := replset.New(b, "set", &replset.Options{Slots: slots})
		if err != nil {
			t.Fatal(err)
		}
		before := usedMemory(t, c)
		f, err := s.Footprint(ctx, members)
		if err != nil {
			t.Fatal(err)
		}
		publish(t, s, members...)
		took := usedMemory(t, c) - before
		ratio := float64(f.Masters) / float64(took)
		t.Logf("%-20s %-9s %6d B a replica, foretold %9d, took %9d, ratio %.3f", tc.name, f.Encoding, f.PerReplica, f.Masters, took, ratio)
		if ratio < 0.85 || ratio > 1.15 || !f.Measured || f.Members != tc.count || f.Replicas != 0 {
			t.Errorf("%s: foretold %+v, took %d bytes: ratio %.3f, want 0.85 to 1.15", tc.name, f, took, ratio)
		}
		tell(t, c.Nodes(), "FLUSHALL", "SYNC")
		publish(t, warm, "x")

		tight, err := replset.New(b, "set", &replset.Options{Slots: slots, MaxBytes: f.Masters * 9 / 10})
		if err != nil {
			t.Fatal(err)
		}
		var large *replset.TooLargeError
		if err := tight.Publish(ctx, members); !errors.As(err, &large) || large.Limit != f.Masters*9/10 {
			t.Errorf("%s: a publish over the limit: got %v, want a *TooLargeError", tc.name, err)
		}
		if _, err := tight.Len(ctx, "x"); !errors.Is(err, replset.ErrReplicaMissing) {
			t.Errorf("%s: the refused publish left something: %v", tc.name, err)
		}
	}
}

// usedMemory is what all nodes have allocated, once nothing is being freed.
func usedMemory(t *testing.T, c *harness.Cluster) int64 {
	t.Helper()
	var sum int64
	for _, n := range c.Nodes() {
		within(t, time.Minute, "memory was freed", func() bool {
			v, err := n.Do(t.Context(), "INFO", "memory")
			return err == nil && field(v.(string), "lazyfree_pending_objects") == 0
		})
		v, err := n.Do(t.Context(), "INFO", "memory")
		if err != nil {
			t.Fatal(err)
		}
		sum += field(v.(string), "used_memory")
	}
	return sum
}

func field(info, name string) int64 {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return -1
}
