package harness

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// WaitReady returns when every node that was not killed or frozen by the harness says that the cluster is ok, all of them have
// the same slot map, none of the slots belongs to a node that is killed or frozen, and every replica is linked to
// its master. After Kill of a master with a replica that is when the replica has been promoted.
//
// It gives up when ctx ends, or after 30 s if ctx has no deadline; the error says what was still missing.
func (c *Cluster) WaitReady(ctx context.Context) error {
	start := time.Now()
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	c.timeline.since(start, "", "cluster ready")
	return nil
}

func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, cancel := withTimeoutUnlessSet(ctx, startTimeout)
	defer cancel()
	if err := poll(ctx, func() error { return c.notReady(ctx) }); err != nil {
		return fmt.Errorf("harness: the cluster is not ready: %w", err)
	}
	return nil
}

// notReady says what is still missing, or returns nil.
func (c *Cluster) notReady(ctx context.Context) error {
	for _, n := range c.nodes {
		if n.server != nil && n.running() {
			if err := n.server.Exited(); err != nil {
				return finalError{n.errorf("ended by itself: %w; the end of its log:\n%s", err, n.LogTail(logLines))}
			}
		}
	}
	views, err := c.allViews(ctx)
	if err != nil {
		return err
	}
	if len(views) == 0 {
		return finalError{errors.New("every node is killed or frozen")}
	}
	for _, v := range views {
		switch {
		case !v.ok:
			return fmt.Errorf("%v says cluster_state:fail", v.node)
		case v.slotMap() != views[0].slotMap():
			return fmt.Errorf("%v and %v have different slot maps", views[0].node, v.node)
		case !v.linked:
			return fmt.Errorf("%v has no link to its master", v.node)
		}
	}
	for _, m := range views[0].members {
		if n := c.byID(m.id); len(m.slots) > 0 && (n == nil || !n.running()) {
			return fmt.Errorf("slots %v still belong to %s, which is not running", m.slots, m.addr)
		}
	}
	return nil
}
