package harness

import (
	"context"
	"fmt"
	"time"
)

// failoverAttempt is a little longer than servers pursue a failover. On a busy machine one may run out of that time.
const failoverAttempt = 6 * time.Second

// Failover promotes a replica, and returns when all nodes that were not killed or frozen agree that it owns its master's slots. If the
// master answers it is a graceful one that loses no write; if not it is a forced one (CLUSTER FAILOVER FORCE).
//
// Space the failovers of one master's slots at least 5 s apart: servers reuse old votes within that time.
func (c *Cluster) Failover(ctx context.Context, replica *Node) error {
	ctx, cancel := withTimeoutUnlessSet(ctx, startTimeout)
	defer cancel()
	start := time.Now()
	v, err := replica.view(ctx)
	if err != nil {
		return err
	}
	master := c.byID(v.myself().master)
	if master == nil {
		return replica.errorf("failover: it is no replica of a node of this cluster")
	}
	slots := map[*Node][]int{}
	for _, m := range v.members {
		if m.id != master.id {
			continue
		}
		for _, r := range m.slots {
			for s := r[0]; s <= r[1]; s++ {
				slots[master] = append(slots[master], s)
			}
		}
	}
	command, what := []string{"CLUSTER", "FAILOVER"}, "failover"
	if !master.Alive(ctx) {
		command, what = append(command, "FORCE"), "forced failover"
	}
	for {
		if _, err := replica.Do(ctx, command...); err != nil {
			return err
		}
		attempt, cancel := context.WithTimeout(ctx, failoverAttempt)
		err := c.waitOwner(attempt, replica, slots)
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return fmt.Errorf("harness: %s of %v: %w", what, replica, err)
		}
	}
	c.timeline.since(start, replica.name, what+", was a replica of "+master.name)
	return nil
}
