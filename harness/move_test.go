package harness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

// tag0 hashes to slot 0, tag1 to slot 1.
const tag0, tag1 = "{06S}", "{Qi}"

func fill(t *testing.T, n *harness.Node, tag string, count int) {
	t.Helper()
	var commands [][]string
	for i := range count {
		commands = append(commands, []string{"SET", fmt.Sprintf("%s:%d", tag, i), "v"})
	}
	replies, err := n.Pipeline(within(t, time.Minute), commands...)
	must(t, err)
	for i, r := range replies {
		if r != "OK" {
			t.Fatalf("%v: %v: %v", n, commands[i], r)
		}
	}
}

func size(t *testing.T, n *harness.Node) int {
	t.Helper()
	return int(do(t, n, "DBSIZE").(int64))
}

func redirection(err error) string {
	var refused harness.ReplyError
	if !errors.As(err, &refused) {
		return fmt.Sprint(err)
	}
	kind, _, _ := strings.Cut(string(refused), " ")
	return kind
}

func TestMoveSlots(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	c := startCluster(t, harness.Options{})
	from, to := c.Nodes()[0], c.Nodes()[2]
	if slot := do(t, from, "CLUSTER", "KEYSLOT", tag1); slot != int64(1) {
		t.Fatalf("%s is of slot %v, want 1", tag1, slot)
	}
	fill(t, from, tag0, 250) // more than a batch
	fill(t, from, tag1, 10)
	var slots []int
	for s := range 500 {
		slots = append(slots, s)
	}
	start := time.Now()
	must(t, c.MoveSlots(ctx, to, slots...))
	t.Logf("500 slots: %v", time.Since(start).Round(time.Millisecond))
	if a, b := size(t, from), size(t, to); a != 0 || b != 260 {
		t.Errorf("after the move the nodes hold %d and %d keys, want 0 and 260", a, b)
	}
	for s, want := range map[int]*harness.Node{0: to, 499: to, 500: from} {
		got, err := c.Owner(ctx, s)
		must(t, err)
		if got != want {
			t.Errorf("slot %d is on %v, want %v", s, got, want)
		}
	}
	for _, n := range c.Nodes()[:2] {
		if _, err := n.Do(ctx, "GET", tag0); redirection(err) != "MOVED" {
			t.Errorf("%v answers %v, want MOVED: all nodes are to know", n, err)
		}
	}
	must(t, c.MoveSlots(ctx, to, 0, 1))             // there already
	must(t, c.MoveSlots(ctx, c.Nodes()[1], 0, 501)) // from two owners
	if a, b, n := size(t, from), size(t, to), size(t, c.Nodes()[1]); a != 0 || b != 10 || n != 250 {
		t.Errorf("after the second move the nodes hold %d, %d and %d keys, want 0, 10 and 250", a, b, n)
	}
	must(t, c.WaitReady(ctx))
	if err := c.MoveSlots(ctx, to, -1); err == nil {
		t.Error("slot -1 can be moved")
	}
	t.Logf("the timeline:\n%s", c.Timeline())
}

func TestSlotHeldInMigration(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	c := startCluster(t, harness.Options{Masters: 2})
	from, to := c.Nodes()[0], c.Nodes()[1]
	fill(t, from, tag0, 10)

	m, err := c.BeginMove(ctx, to, 0)
	must(t, err)
	moved, err := m.MigrateKeys(ctx, 4)
	must(t, err)
	if a, b := size(t, from), size(t, to); moved != 4 || a != 6 || b != 4 {
		t.Fatalf("moved %d keys, %d stayed and %d arrived, want 4, 6 and 4", moved, a, b)
	}
	asked := 0
	for i := range 10 {
		key := fmt.Sprintf("%s:%d", tag0, i)
		_, err := from.Do(ctx, "GET", key)
		if err == nil {
			continue
		}
		if redirection(err) != "ASK" {
			t.Fatalf("GET %s: %v, want ASK", key, err)
		}
		asked++
		if _, err := to.Do(ctx, "GET", key); redirection(err) != "MOVED" {
			t.Errorf("without ASKING the target answers %v, want MOVED", err)
		}
		replies, err := to.Pipeline(ctx, []string{"ASKING"}, []string{"GET", key})
		must(t, err)
		if replies[1] != "v" {
			t.Errorf("after ASKING the target answers %v, want v", replies[1])
		}
	}
	if asked != 4 {
		t.Errorf("%d keys answer ASK, want 4", asked)
	}
	must(t, m.Finish(ctx))
	if a, b := size(t, from), size(t, to); a != 0 || b != 10 {
		t.Errorf("after the end the nodes hold %d and %d keys, want 0 and 10", a, b)
	}
	if err := m.Finish(ctx); err == nil {
		t.Error("a move can be finished twice")
	}
	if _, err := m.MigrateKeys(ctx, 0); err == nil {
		t.Error("keys move after the end")
	}
	must(t, m.Abort(ctx)) // of a move that has ended is nothing: it fits a defer
	if owner, err := c.Owner(ctx, 0); err != nil || owner != to {
		t.Errorf("the owner is %v (%v), want %v", owner, err, to)
	}
}

func TestMoveUndone(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	c := startCluster(t, harness.Options{Masters: 2})
	from, to := c.Nodes()[0], c.Nodes()[1]
	fill(t, from, tag0, 10)
	fill(t, from, tag1, 10)

	m, err := c.BeginMove(ctx, to, 0, 1)
	must(t, err)
	_, err = m.MigrateKeys(ctx, 15)
	must(t, err)
	must(t, m.Abort(ctx))
	if a, b := size(t, from), size(t, to); a != 20 || b != 0 {
		t.Errorf("after the abort the nodes hold %d and %d keys, want 20 and 0", a, b)
	}
	if owner, err := c.Owner(ctx, 0); err != nil || owner != from {
		t.Errorf("the owner is %v (%v), want %v", owner, err, from)
	}
	for _, n := range c.Nodes() {
		if text := do(t, n, "CLUSTER", "NODES").(string); strings.Contains(text, "[") {
			t.Errorf("%v still has an open slot:\n%s", n, text)
		}
	}
	must(t, c.WaitReady(ctx))

	// A key written anew at its owner while the slot is being closed is newer than the one that had moved.
	m, err = c.BeginMove(ctx, to, 0)
	must(t, err)
	_, err = m.MigrateKeys(ctx, 0)
	must(t, err)
	do(t, from, "CLUSTER", "SETSLOT", "0", "STABLE")
	do(t, from, "SET", tag0+":3", "newer")
	must(t, m.Abort(ctx))
	if a, b := size(t, from), size(t, to); a != 20 || b != 0 {
		t.Errorf("after the abort the nodes hold %d and %d keys, want 20 and 0", a, b)
	}
	for key, want := range map[string]string{tag0 + ":2": "v", tag0 + ":3": "newer"} {
		if got := do(t, from, "GET", key); got != want {
			t.Errorf("after the abort %s is %v, want %s", key, got, want)
		}
	}
}

// A reshard is live: a client that follows redirections sees every key all the time.
func TestMoveUnderReads(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	c := startCluster(t, harness.Options{Masters: 2})
	a, b := c.Nodes()[0], c.Nodes()[1]
	fill(t, a, tag0, 500)
	stop, wrong := make(chan struct{}), make(chan error)
	reads := 0
	go func() {
		defer close(wrong)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if got, err := follow(c, fmt.Sprintf("%s:%d", tag0, i%500)); err != nil || got != "v" {
				wrong <- fmt.Errorf("read %d: %v, %v", i, got, err)
				return
			}
			reads++
		}
	}()
	for range 3 {
		must(t, c.MoveSlots(ctx, b, 0))
		must(t, c.MoveSlots(ctx, a, 0))
	}
	close(stop)
	if err := <-wrong; err != nil {
		t.Error(err)
	}
	if reads == 0 {
		t.Error("nothing was read meanwhile")
	}
	t.Logf("%d reads during 6 moves", reads)
}

// follow reads a key as a cluster client does.
func follow(c *harness.Cluster, key string) (any, error) {
	n, asking := c.Nodes()[0], false
	for range 10 {
		commands := [][]string{{"GET", key}}
		if asking {
			commands = [][]string{{"ASKING"}, {"GET", key}}
		}
		replies, err := n.Pipeline(context.Background(), commands...)
		if err != nil {
			return nil, err
		}
		reply := replies[len(replies)-1]
		refused, ok := reply.(harness.ReplyError)
		if !ok {
			return reply, nil
		}
		f := strings.Fields(string(refused))
		if len(f) != 3 || f[0] != "ASK" && f[0] != "MOVED" {
			return nil, refused
		}
		asking = f[0] == "ASK"
		for _, other := range c.Nodes() {
			if other.Addr() == f[2] {
				n = other
			}
		}
	}
	return nil, errors.New("redirected 10 times")
}

// Moves in quick succession: each must know the epoch that the one before it gave, or the nodes differ for good.
func TestSlotsMoveInQuickSuccession(t *testing.T) {
	t.Parallel()
	c := startCluster(t, harness.Options{})
	nodes := c.Nodes()
	for slot := range 30 {
		for _, to := range []*harness.Node{nodes[1], nodes[2]} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if err := c.MoveSlots(ctx, to, slot); err != nil {
				t.Fatalf("slot %d to %v: %v", slot, to, err)
			}
			cancel()
		}
	}
}

// The same with many slots at a time, whose last one is the first to be lost.
func TestManySlotsMoveInQuickSuccession(t *testing.T) {
	t.Parallel()
	c := startCluster(t, harness.Options{})
	nodes := c.Nodes()
	var slots []int
	for slot := 11000; slot < harness.Slots; slot += 170 {
		slots = append(slots, slot)
	}
	for move := range 150 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := c.MoveSlots(ctx, nodes[move%2], slots...); err != nil {
			t.Fatalf("move %d: %v", move, err)
		}
		cancel()
	}
}

// The same with replicas, whose claims for their masters come late, and masters that were replicas.
func TestSlotsMoveInQuickSuccessionAfterFailovers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, harness.Options{Replicas: 1})
	nodes := c.Nodes()
	for _, promoted := range nodes[3:5] {
		if err := c.Failover(t.Context(), promoted); err != nil {
			t.Fatal(err)
		}
	}
	var slots []int
	for slot := 100; slot < 5400; slot += 220 {
		slots = append(slots, slot)
	}
	for round := range 30 {
		for _, to := range []*harness.Node{nodes[4], nodes[3]} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if err := c.MoveSlots(ctx, to, slots...); err != nil {
				t.Fatalf("round %d, to %v: %v", round, to, err)
			}
			cancel()
		}
	}
}
