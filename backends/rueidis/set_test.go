package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// A replicated set over this backend: published, read, changed, and read and
// changed again while some of its slots move.
func TestReplicatedSet(t *testing.T) {
	c := sharedCluster(t)
	b := connect(t, c)
	ctx := t.Context()
	const key = "subs:{42}"
	slots := []uint16{slotmap.Slot(key)} // and many more
	for slot := 0; slot < slotmap.Slots; slot += 97 {
		slots = append(slots, uint16(slot))
	}
	set, err := replset.New(b, "e2e", &replset.Options{Slots: slots})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := set.Clear(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if _, err := set.Contains(ctx, key, "m"); !errors.Is(err, replset.ErrReplicaMissing) {
		t.Errorf("before it was published: got %v, want ErrReplicaMissing", err)
	}
	var members []string
	for i := range 200 {
		members = append(members, fmt.Sprintf("member-%03d", i))
	}
	if err := set.Publish(ctx, members); err != nil {
		t.Fatal(err)
	}
	// everywhere compares the replicas of many slots, of moved ones too.
	everywhere := func(when string) {
		t.Helper()
		for _, slot := range slots {
			got, err := set.Members(ctx, slotmap.KeyForSlot("any", slot))
			slices.Sort(got)
			if err != nil || !slices.Equal(got, members) {
				t.Fatalf("%s: slot %d: %d members of %d, %v", when, slot, len(got), len(members), err)
			}
		}
	}
	everywhere("published")

	if _, err := b.Do(ctx, key, []string{"SADD", key, "member-007", "member-150", "stranger"}); err != nil {
		t.Fatal(err)
	}
	got, err := set.Intersect(ctx, key)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, []string{"member-007", "member-150"}) {
		t.Errorf("Intersect: got %v, %v", got, err)
	}
	if got, err := set.Without(ctx, key); err != nil || !slices.Equal(got, []string{"stranger"}) {
		t.Errorf("Without: got %v, %v", got, err)
	}
	if n, err := set.Count(ctx, key, 0); err != nil || n != 2 {
		t.Errorf("Count: got %d, %v", n, err)
	}
	if err := set.Apply(ctx, replset.Delta{Add: []string{"added-1", "added-2"}, Remove: []string{"member-000"}}); err != nil {
		t.Fatal(err)
	}
	members = append([]string{"added-1", "added-2"}, members[1:]...)
	everywhere("changed")

	// Slots of key and of the comparison move while readers and a writer go on.
	owner, other := masters(t, c, slots[0])
	moved := []int{int(slots[0])}
	for _, slot := range slots[1:] {
		if *b.slots.owner(slot) == owner.Addr() && len(moved) < 20 {
			moved = append(moved, int(slot))
		}
	}
	working, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	reads := 0
	workers.Go(func() {
		for ; working.Err() == nil; reads++ {
			got, err := set.Intersect(ctx, key)
			slices.Sort(got)
			if err != nil || !slices.Equal(got, []string{"member-007", "member-150"}) {
				t.Errorf("Intersect during the move: got %v, %v", got, err)
				return
			}
		}
	})
	adds := []string{}
	workers.Go(func() {
		for i := 0; working.Err() == nil; i++ {
			m := fmt.Sprintf("during-%02d", i)
			if err := set.Add(ctx, m); err != nil {
				t.Errorf("Add during the move: %v", err)
				return
			}
			adds = append(adds, m)
		}
	})
	if err := c.MoveSlots(ctx, other, moved...); err != nil {
		t.Error(err)
	}
	stop()
	workers.Wait()
	members = append(adds, members...)
	slices.Sort(members)
	everywhere("moved")
	t.Logf("%d reads and %d adds during a move of %d slots", reads, len(adds), len(moved))
	if err := set.Publish(ctx, members[:50]); err != nil {
		t.Error(err)
	}
	members = members[:50]
	everywhere("published again")
	if err := c.MoveSlots(context.Background(), owner, moved...); err != nil {
		t.Error(err)
	}
}
