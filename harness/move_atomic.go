package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MoveSlotsAtomically moves slots with their keys to another master as Redis 8.4 and Valkey 9 do it by themselves, and returns when all
// nodes agree. The keys are copied in the background and change hands at one moment: no client sees ASK or TRYAGAIN. Slots that
// are there already are left alone. Other servers are ErrUnsupported: see MoveSlots.
//
// If ctx ends first, servers may still be at it.
func (c *Cluster) MoveSlotsAtomically(ctx context.Context, to *Node, slots ...int) error {
	ctx, cancel := withTimeoutUnlessSet(ctx, startTimeout)
	defer cancel()
	move := migrateFrom
	switch {
	case c.version.Name == "redis" && c.version.AtLeast(8, 4):
		move = importTo
	case c.version.Name != "valkey" || !c.version.AtLeast(9, 0):
		return fmt.Errorf("harness: move slots atomically: %w: %v does not, Redis 8.4 and Valkey 9 do", ErrUnsupported, c.version)
	}
	from, err := c.leaving(ctx, to, slots)
	if err != nil {
		return err
	}
	start := time.Now()
	for owner, slots := range from {
		if err := move(ctx, owner, to, slots); err != nil {
			return err
		}
	}
	if err := c.waitOwner(ctx, to, from); err != nil {
		return err
	}
	c.timeline.since(start, to.name, "move here, atomically, of "+c.describe(from))
	return nil
}

// importTo has the target fetch the slots, as Redis does: https://redis.io/docs/latest/commands/cluster-migration/.
func importTo(ctx context.Context, owner, to *Node, slots []int) error {
	id, err := to.text(ctx, append([]string{"CLUSTER", "MIGRATION", "IMPORT"}, slotRanges(slots)...)...)
	if err != nil {
		return err
	}
	return to.waitMigration(ctx, "completed", "CLUSTER", "MIGRATION", "STATUS", "ID", id)
}

// migrateFrom has the owner send the slots, as Valkey does: https://valkey.io/commands/cluster-migrateslots/.
func migrateFrom(ctx context.Context, owner, to *Node, slots []int) error {
	args := append([]string{"CLUSTER", "MIGRATESLOTS", "SLOTSRANGE"}, slotRanges(slots)...)
	if _, err := owner.Do(ctx, append(args, "NODE", to.id)...); err != nil {
		return err
	}
	return owner.waitMigration(ctx, "success", "CLUSTER", "GETSLOTMIGRATIONS")
}

// waitMigration waits until the newest migration that the command lists has come to its end.
func (n *Node) waitMigration(ctx context.Context, done string, list ...string) error {
	return poll(ctx, func() error {
		reply, err := n.Do(ctx, list...)
		if err != nil {
			return err
		}
		all, _ := reply.([]any)
		if len(all) == 0 {
			return n.errorf("%s: no migration is listed", strings.Join(list, " "))
		}
		fields, _ := all[0].([]any) // the newest comes first
		state := ""
		for i := 0; i+1 < len(fields); i += 2 {
			if fields[i] == "state" {
				state, _ = fields[i+1].(string)
			}
		}
		switch state {
		case done:
			return nil
		case "failed", "cancelled", "canceled":
			return finalError{n.errorf("the migration is %s: %v", state, fields)}
		}
		return n.errorf("the migration is %s", state)
	})
}

// slotRanges are the slots as first and last slots of ranges, in turn.
func slotRanges(slots []int) (ranges []string) {
	slots = slices.Clone(slots)
	slices.Sort(slots)
	slots = slices.Compact(slots)
	for i := 0; i < len(slots); {
		j := i
		for j+1 < len(slots) && slots[j+1] == slots[j]+1 {
			j++
		}
		ranges = append(ranges, strconv.Itoa(slots[i]), strconv.Itoa(slots[j]))
		i = j + 1
	}
	return ranges
}
