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

	mu     sync.Mutex
	handed bool // the target has taken some slot as its own: there is no way back
	ended  bool
}

var errMoveEnded = errors.New("harness: the move has ended: begin another")

// BeginMove opens the slots for a move and moves nothing yet, so that a test can look at a slot in that state for as long as it
// wants.
func (c *Cluster) BeginMove(ctx context.Context, to *Node, slots ...int) (*Move, error) {
	from, err := c.leaving(ctx, to, slots)
	if err != nil {
		return nil, err
	}
	m := &Move{c: c, to: to, from: from}
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

// leaving returns those of the slots that are not on the node yet, by their owners.
func (c *Cluster) leaving(ctx context.Context, to *Node, slots []int) (map[*Node][]int, error) {
	table, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	from := map[*Node][]int{}
	for _, s := range slots {
		if s < 0 || s >= Slots {
			return nil, fmt.Errorf("harness: slot %d: want 0 to %d", s, Slots-1)
		}
		owner := c.byID(table[s])
		if owner == nil {
			return nil, fmt.Errorf("harness: slot %d has no owner among the nodes", s)
		}
		if owner != to {
			from[owner] = append(from[owner], s)
		}
	}
	return from, nil
}

func (m *Move) what() string { return m.c.describe(m.from) }

// describe says how many slots leave whom.
func (c *Cluster) describe(leaving map[*Node][]int) string {
	n, from := 0, []string{}
	for _, owner := range c.nodes {
		if slots := leaving[owner]; len(slots) > 0 {
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
		return 0, errMoveEnded
	}
	return m.migrate(ctx, limit)
}

func (m *Move) migrate(ctx context.Context, limit int) (moved int, err error) {
	start := time.Now()
	for owner, slots := range m.from {
		for limit == 0 || moved < limit {
			keys, err := owner.keysIn(ctx, slots)
			if err != nil {
				return moved, err
			}
			if len(keys) == 0 {
				break
			}
			for _, batch := range keys {
				if limit > 0 {
					batch = batch[:min(len(batch), limit-moved)]
				}
				if len(batch) == 0 {
					break
				}
				if err := owner.migrateKeys(ctx, m.to, batch...); err != nil {
					return moved, err
				}
				moved += len(batch)
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
		return errMoveEnded
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
	if err := m.c.waitEpochs(ctx, m.to); err != nil {
		return err
	}
	for owner, slots := range m.from {
		// The target first: were it to die right after the source gave the slot up, nobody would own it.
		m.handed = true
		if err := m.to.setSlots(ctx, slots, "NODE", m.to.id); err != nil {
			return err
		}
		// It tells the others after each slot. Those that are told by us before its last message but one has come take the last
		// slot for one that it does not claim, for good (redis 7.0), and then for anybody's who claims it late: so they hear it from the
		// target, which takes milliseconds, and are told only where they do not.
		told, cancel := context.WithTimeout(ctx, tellTimeout)
		heard := m.c.waitOwner(told, m.to, map[*Node][]int{owner: slots}) == nil
		cancel()
		if err := owner.setSlots(ctx, slots, "NODE", m.to.id); err != nil {
			return err
		}
		for _, n := range masters {
			if !heard && n != m.to && n != owner && n.running() {
				n.setSlots(ctx, slots, "NODE", m.to.id) // a failure here is none: the wait below decides
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
	switch {
	case m.ended:
		return nil
	case m.handed:
		return errors.New("harness: the target has taken slots over, so the move cannot be undone: call Finish again")
	}
	start := time.Now()
	for owner, slots := range m.from {
		if err := owner.setSlots(ctx, slots, "STABLE"); err != nil {
			return err
		}
		if err := m.bringBack(ctx, owner, slots); err != nil {
			return err
		}
		if err := m.to.setSlots(ctx, slots, "STABLE"); err != nil {
			return err
		}
	}
	m.ended = true
	m.c.timeline.since(start, m.to.name, "the move here is undone of "+m.what())
	return nil
}

func (m *Move) bringBack(ctx context.Context, owner *Node, slots []int) error {
	for {
		keys, err := m.to.keysIn(ctx, slots)
		if err != nil || len(keys) == 0 {
			return err
		}
		for _, batch := range keys {
			err := m.to.migrateKeys(ctx, owner, batch...)
			if isBusyKey(err) {
				err = m.bringBackEach(ctx, owner, batch)
			}
			if err != nil {
				return err
			}
		}
	}
}

// bringBackEach drops those keys that a client has written anew at their owner.
func (m *Move) bringBackEach(ctx context.Context, owner *Node, keys []string) error {
	for _, key := range keys {
		err := m.to.migrateKeys(ctx, owner, key)
		if isBusyKey(err) {
			_, err = m.to.Pipeline(ctx, []string{"ASKING"}, []string{"DEL", key})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isBusyKey(err error) bool {
	var refused ReplyError
	return errors.As(err, &refused) && strings.Contains(string(refused), "BUSYKEY")
}

// setSlots sends CLUSTER SETSLOT for each slot.
func (n *Node) setSlots(ctx context.Context, slots []int, state ...string) error {
	commands := make([][]string, len(slots))
	for i, s := range slots {
		commands[i] = append([]string{"CLUSTER", "SETSLOT", strconv.Itoa(s)}, state...)
	}
	// Valkey takes a slot's new owner only while it hears from its replicas, which may be late on a busy machine.
	late, cancel := context.WithTimeout(ctx, lateReplicas)
	defer cancel()
	return poll(late, func() error {
		replies, err := n.Pipeline(ctx, commands...)
		if err != nil {
			return finalError{err}
		}
		var again [][]string
		for i, r := range replies {
			refused, ok := r.(ReplyError)
			if !ok {
				continue
			}
			err = n.errorf("%s: %w", strings.Join(commands[i], " "), refused)
			if !strings.HasPrefix(string(refused), "NOREPLICAS") {
				return finalError{err}
			}
			again = append(again, commands[i])
		}
		commands = again
		return err
	})
}

const (
	migrateBatch   = 100             // keys per MIGRATE: the source serves nobody else meanwhile
	migrateTimeout = 5 * time.Second // per MIGRATE, for the source to wait for the target

	lateReplicas = 5 * time.Second // for a node to hear from its replicas

	tellTimeout = 500 * time.Millisecond // for the others to hear of slots from their new owner
)

// keysIn returns a batch of keys for each slot that has some.
func (n *Node) keysIn(ctx context.Context, slots []int) ([][]string, error) {
	list := make([][]string, len(slots))
	for i, s := range slots {
		list[i] = []string{"CLUSTER", "GETKEYSINSLOT", strconv.Itoa(s), strconv.Itoa(migrateBatch)}
	}
	replies, err := n.Pipeline(ctx, list...)
	if err != nil {
		return nil, err
	}
	var batches [][]string
	for i, r := range replies {
		items, ok := r.([]any)
		if !ok {
			return nil, n.errorf("list the keys of slot %d: the reply is %v", slots[i], r)
		}
		var keys []string
		for _, item := range items {
			key, _ := item.(string)
			keys = append(keys, key)
		}
		if len(keys) > 0 {
			batches = append(batches, keys)
		}
	}
	return batches, nil
}

func (n *Node) migrateKeys(ctx context.Context, to *Node, keys ...string) error {
	host, port, err := net.SplitHostPort(to.direct)
	if err != nil {
		return to.errorf("%w", err)
	}
	args := []string{"MIGRATE", host, port, "", "0", strconv.FormatInt(migrateTimeout.Milliseconds(), 10)}
	if n.password != "" {
		args = append(args, "AUTH", n.password)
	}
	_, err = n.Do(ctx, append(append(args, "KEYS"), keys...)...)
	return err
}

// waitEpochs waits until to knows every running node's epoch. A node that takes slots over gives itself a new epoch only if it
// does not hold the greatest that it knows of. With one that it has not heard of yet, from the move before this one, its claim
// would lose against a late message of the former owner, and the nodes would differ for good.
func (c *Cluster) waitEpochs(ctx context.Context, to *Node) error {
	return poll(ctx, func() error {
		views, err := c.allViews(ctx)
		if err != nil {
			return err
		}
		known := map[string]uint64{}
		for _, v := range views {
			if v.node == to {
				for _, m := range v.members {
					known[m.id] = m.epoch
				}
			}
		}
		for _, v := range views {
			if own := v.myself(); known[own.id] < own.epoch {
				return to.errorf("does not yet know epoch %d of %v", own.epoch, v.node)
			}
		}
		return nil
	})
}

// waitOwner waits until every running node says that the slots are to's.
func (c *Cluster) waitOwner(ctx context.Context, to *Node, slots map[*Node][]int) error {
	return poll(ctx, func() error {
		views, err := c.allViews(ctx)
		if err != nil {
			return err
		}
		var epoch uint64 // of the owner's claim, as it knows it itself
		for _, v := range views {
			if v.node == to {
				epoch = v.myself().epoch
			}
		}
		for _, v := range views {
			var owned [Slots]bool
			for _, m := range v.members {
				if m.id != to.id {
					continue
				}
				if m.epoch < epoch {
					return v.node.errorf("does not yet know epoch %d of %v", epoch, to)
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
