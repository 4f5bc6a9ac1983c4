package harness_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

func TestMoveSlotsAtomically(t *testing.T) {
	t.Parallel()
	c := startCluster(t, harness.Options{Masters: 3})
	ctx := within(t, time.Minute)
	v := c.Version()
	can := v.Name == "redis" && v.AtLeast(8, 4) || v.Name == "valkey" && v.AtLeast(9, 0)
	do(t, c.Nodes()[0], "SET", "{06S}", "v") // slot 0
	err := c.MoveSlotsAtomically(ctx, c.Nodes()[1], 0, 2, 1, 7, 10922)
	if !can {
		if !errors.Is(err, harness.ErrUnsupported) {
			t.Errorf("with %v the error is %v, want ErrUnsupported", v, err)
		}
		return
	}
	must(t, err)
	if got := do(t, c.Nodes()[1], "GET", "{06S}"); got != "v" {
		t.Errorf("after the move the key is %v, want v", got)
	}
	for slot, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 0, 7: 1, 8: 0, 10922: 1, 10923: 2} {
		owner, err := c.Owner(ctx, slot)
		must(t, err)
		if owner != c.Nodes()[want] {
			t.Errorf("slot %d is on %v, want %v", slot, owner, c.Nodes()[want])
		}
	}
	for back := range 3 { // to and fro
		must(t, c.MoveSlotsAtomically(ctx, c.Nodes()[2*(back%2)], 0, 1, 2))
	}
	if got := do(t, c.Nodes()[0], "GET", "{06S}"); got != "v" {
		t.Errorf("after four moves the key is %v, want v", got)
	}
	must(t, c.MoveSlotsAtomically(ctx, c.Nodes()[0], 0)) // there already
	if err := c.MoveSlotsAtomically(ctx, c.Nodes()[0], harness.Slots); err == nil {
		t.Error(fmt.Sprint("slot ", harness.Slots, " was moved"))
	}
}
