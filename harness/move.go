package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MoveSlots moves slots with their keys to another master while clients go on, as an operator's reshard does, and returns when all
// nodes agree. Slots that are there already are left alone. If it fails half-way it puts back what it can.
func (c *Cluster) MoveSlots(ctx context.Context, to *Node, slots ...int) error {
	m, err := c.BeginMove(ctx, to, slots...)
	if err != nil {
		return err
	}
	if err := m.Finish(ctx); err != nil {
		// The context that cut the move short must not also stop the repair.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTimeout)
		defer cancel()
		if abort := m.Abort(ctx); abort != nil {
			err = errors.Join(err, fmt.Errorf("harness: and the move could not be undone: %w", abort))
		}
		return err
	}
	return nil
}

// A Move is a reshard under way: its slots are MIGRATING at their owners and IMPORTING at the target. A key that
// has moved answers ASK at its old owner. Finish or Abort ends it. A Move may be used concurrently.
type Move struct {
	c    *Cluster
	to   *Node
	from map[*Node][]int // slots by the owner they leave

	mu    sync.Mutex
	ended bool
}

// BeginMove opens the slots for a move and moves nothing yet, so that a test can look at a slot in that state for as long as it
// wants.
func (c *Cluster) BeginMove(ctx context.Context, to *Node, slots ...int) (*Move, error) {
	table, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	m := &Move{c: c, to: to, from: map[*Node][]int{}}
	for _, s := range slots {
		if s < 0 || s >= Slots {
			return nil, fmt.Errorf("harness: slot %d: want 0 to %d", s, Slots-1)
		}
		owner := c.byID(table[s])
		if owner == nil {
			return nil, fmt.Errorf("harness: slot %d has no owner among the nodes", s)
		}
		if owner != to {
			m.from[owner] = append(m.from[owner], s)
		}
	}
	start := time.Now()
	for owner, slots := range m.from {
		err := to.setSlots(ctx, slots, "IMPORTING", owner.id)
		if err == nil {
			err = owner.setSlots(ctx, slots, "MIGRATING", to.id)
		}
		if err != nil {
			undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTimeout)
			defer cancel()
			return nil, errors.Join(err, m.Abort(undo))
		}
	}
	c.timeline.since(start, to.name, "begin to move here "+m.what())
	return m, nil
}

func (m *Move) what() string {
	n, from := 0, []string{}
	for _, owner := range m.c.nodes {
		if slots := m.from[owner]; len(slots) > 0 {
			n += len(slots)
			from = append(from, owner.name)
		}
	}
	if n == 0 {
		return "0 slots"
	}
	return fmt.Sprintf("%d slots from %s", n, strings.Join(from, ", "))
}

// MigrateKeys moves up to limit keys, or all that are left if limit is 0, and returns how many it moved.
func (m *Move) MigrateKeys(ctx context.Context, limit int) (moved int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return 0, errors.New("harness: the move has ended")
	}
	return m.migrate(ctx, limit)
}

func (m *Move) migrate(ctx context.Context, limit int) (moved int, err error) {
	start := time.Now()
	for owner, slots := range m.from {
		for {
			left := 0 // 0 means all
			if limit > 0 {
				if left = limit - moved; left == 0 {
					break
				}
			}
			n, err := owner.migrateSlots(ctx, m.to, slots, left)
			moved += n
			if err != nil {
				return moved, err
			}
			if n == 0 {
				break
			}
		}
	}
	m.c.timeline.since(start, m.to.name, fmt.Sprintf("%d keys moved here", moved))
	return moved, nil
}

// Finish moves the keys that are left, hands the slots over, and returns when all nodes that were not killed or frozen
// agree. After an error the move is still open: call Finish again, or Abort.
func (m *Move) Finish(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return errors.New("harness: the move has ended")
	}
	if len(m.from) == 0 {
		m.ended = true
		return nil
	}
	ctx, cancel := withTimeoutUnlessSet(ctx, startTimeout)
	defer cancel()
	start := time.Now()
	if _, err := m.migrate(ctx, 0); err != nil {
		return err
	}
	masters, err := m.c.Masters(ctx)
	if err != nil {
		return err
	}
	for owner, slots := range m.from {
		// The target first: were it to die right after the source gave the slot up, nobody would own it.
		for _, n := range []*Node{m.to, owner} {
			if err := n.setSlots(ctx, slots, "NODE", m.to.id); err != nil {
				return err
			}
		}
		for _, n := range masters {
			if n != m.to && n != owner && n.running() {
				// Only to be faster than gossip, so a failure here is none: the wait below decides.
				n.setSlots(ctx, slots, "NODE", m.to.id)
			}
		}
	}
	if err := m.c.waitOwner(ctx, m.to, m.from); err != nil {
		return err
	}
	m.ended = true
	m.c.timeline.since(start, m.to.name, "end of the move here of "+m.what())
	return nil
}

// Abort closes the slots and brings the keys that had moved back to their owners. Until it returns such a key is
// missing for clients. If a client wrote a key anew in that time, the new one stays. After an error it may be called again.
func (m *Move) Abort(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return nil
	}
	start := time.Now()
	for owner, slots := range m.from {
		if err := owner.setSlots(ctx, slots, "STABLE"); err != nil {
			return err
		}
		for {
			n, err := m.to.migrateSlots(ctx, owner, slots, 0)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
		if err := m.to.setSlots(ctx, slots, "STABLE"); err != nil {
			return err
		}
	}
	m.ended = true
	m.c.timeline.since(start, m.to.name, "the move here is undone of "+m.what())
	return nil
}

// setSlots sends CLUSTER SETSLOT for each slot.
func (n *Node) setSlots(ctx context.Context, slots []int, state ...string) error {
	commands := make([][]string, len(slots))
	for i, s := range slots {
		commands[i] = append([]string{"CLUSTER", "SETSLOT", strconv.Itoa(s)}, state...)
	}
	replies, err := n.Pipeline(ctx, commands...)
	if err != nil {
		return err
	}
	for i, r := range replies {
		if refused, ok := r.(ReplyError); ok {
			return n.errorf("%s: %w", strings.Join(commands[i], " "), refused)
		}
	}
	return nil
}

const (
	migrateBatch   = 100             // keys per MIGRATE: the source serves nobody else meanwhile
	migrateTimeout = 5 * time.Second // per MIGRATE, for the source to wait for the target
)

// migrateSlots moves up to limit keys of the slots to another node, or one batch of each slot if limit is 0. 0 moved means
// that none are left.
func (n *Node) migrateSlots(ctx context.Context, to *Node, slots []int, limit int) (moved int, err error) {
	list := make([][]string, len(slots))
	for i, s := range slots {
		list[i] = []string{"CLUSTER", "GETKEYSINSLOT", strconv.Itoa(s), strconv.Itoa(migrateBatch)}
	}
	replies, err := n.Pipeline(ctx, list...)
	if err != nil {
		return 0, err
	}
	for i, r := range replies {
		if refused, ok := r.(ReplyError); ok {
			return moved, n.errorf("list the keys of slot %d: %w", slots[i], refused)
		}
		items, _ := r.([]any)
		if limit > 0 && len(items) > limit-moved {
			items = items[:limit-moved]
		}
		if len(items) == 0 {
			continue
		}
		keys := make([]string, len(items))
		for i, item := range items {
			keys[i], _ = item.(string)
		}
		if err := n.migrateKeys(ctx, to, keys); err != nil {
			return moved, err
		}
		moved += len(keys)
	}
	return moved, nil
}

func (n *Node) migrateKeys(ctx context.Context, to *Node, keys []string) error {
	host, port, err := net.SplitHostPort(to.direct)
	if err != nil {
		return to.errorf("%w", err)
	}
	args := []string{"MIGRATE", host, port, "", "0", strconv.FormatInt(migrateTimeout.Milliseconds(), 10)}
	if n.password != "" {
		args = append(args, "AUTH", n.password)
	}
	args = append(append(args, "KEYS"), keys...)
	_, err = n.Do(ctx, args...)
	return err
}

// waitOwner waits until every running node says that the slots are to's.
func (c *Cluster) waitOwner(ctx context.Context, to *Node, slots map[*Node][]int) error {
	return poll(ctx, func() error {
		views, err := c.allViews(ctx)
		if err != nil {
			return err
		}
		for _, v := range views {
			var owned [Slots]bool
			for _, m := range v.members {
				if m.id != to.id {
					continue
				}
				for _, r := range m.slots {
					for s := r[0]; s <= r[1]; s++ {
						owned[s] = true
					}
				}
			}
			for _, some := range slots {
				for _, s := range some {
					if !owned[s] {
						return v.node.errorf("does not yet know that slot %d is on %v", s, to)
					}
				}
			}
		}
		return nil
	})
}
