package goredis_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/slotmap"
)

// neverReload keeps the client from reading the slot map by the clock.
func neverReload(o *redis.ClusterOptions) { o.ClusterStateReloadInterval = time.Hour }

// A slot that moved since the client read the map is found by MOVED.
func TestOldMapIsCorrectedByMoved(t *testing.T) {
	c := sharedCluster(t)
	for i, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			slot := 1000 + i
			owner, other := owners(t, c, slot)
			b := connect(t, c, neverReload)
			key := keyIn(t, slot, "moved")
			if _, err := b.Do(t.Context(), key, []string{"SET", key, "v"}); err != nil {
				t.Fatal(err)
			}
			move(t, c, other, slot)
			defer move(t, c, owner, slot)
			moved := movedCount(t, owner)
			if v, err := w.run(t.Context(), b, key, "GET", key); err != nil || v != "v" {
				t.Errorf("GET: got %v, %v", v, err)
			}
			if movedCount(t, owner) == moved {
				t.Error("the old owner was not asked: the map was not old, and the test shows nothing")
			}
			if v, err := w.run(t.Context(), b, key, "INCR", keyIn(t, slot, "n")); err != nil || v != int64(1) {
				t.Errorf("INCR: got %v, %v", v, err)
			}
			// A keyless command gets no MOVED: the map must be right soon.
			eventually(t, "the map is right", func() bool {
				v, err := w.run(t.Context(), b, key, "CLUSTER", "MYID")
				return err == nil && v == other.ID()
			})
		})
	}
}

// Most commands of a pipeline are where the old map says, and some are not.
func TestPipelineFollowsEachCommand(t *testing.T) {
	c := sharedCluster(t)
	var gone []int
	owner, other := owners(t, c, 3000)
	for slot := 3000; slot < 3200; slot += 4 {
		gone = append(gone, slot)
	}
	b := connect(t, c, neverReload)
	warm(t, b)
	var keys []string
	var cmds [][]string
	for slot := 2900; slot < 3300; slot++ {
		key := keyIn(t, slot, "p")
		keys = append(keys, key)
		cmds = append(cmds, []string{"INCRBY", key, fmt.Sprint(slot)})
	}
	move(t, c, other, gone...)
	defer move(t, c, owner, gone...)
	for i, v := range b.Pipeline(t.Context(), keys, cmds) {
		if v != int64(2900+i) {
			t.Errorf("element %d: got %v, want %d", i, v, 2900+i)
		}
	}
}

// A transaction is redirected as a whole: it runs once, at the new owner, and
// nothing of it ran at the old one.
func TestTxIsRedirectedWhole(t *testing.T) {
	c := sharedCluster(t)
	const slot = 1100
	owner, other := owners(t, c, slot)
	a, z := keyIn(t, slot, "a"), keyIn(t, slot, "z")
	b := connect(t, c, neverReload)
	warm(t, b)
	move(t, c, other, slot)
	defer move(t, c, owner, slot)
	for _, n := range []*harness.Node{owner, other} {
		tell(t, n, "CONFIG", "RESETSTAT")
	}
	list, err := b.Tx(t.Context(), a, [][]string{{"SET", a, "1"}, {"SADD", z, "x"}, {"INCR", a}, {"SCARD", z}, {"SADD", a, "y"}})
	if err != nil || len(list) != 5 || fmt.Sprint(list[:4]) != "[OK 1 2 1]" {
		t.Fatalf("got %v, %v", list, err)
	}
	if failed, ok := list[4].(error); !ok || !strings.HasPrefix(failed.Error(), "WRONGTYPE ") {
		t.Errorf("SADD on a string in it: got %v, want WRONGTYPE", list[4])
	}
	for command, want := range map[string]int{"incr": 1, "sadd": 2, "exec": 1} {
		if n := ran(t, other, command); n != want {
			t.Errorf("%s ran %d times at the new owner, want %d", command, n, want)
		}
	}
	for _, command := range []string{"set", "sadd", "incr", "scard"} {
		if n := ran(t, owner, command); n != 0 {
			t.Errorf("%s ran %d times at the old owner", command, n)
		}
	}
}

// While a slot moves: keys that have gone and new ones are found by ASK at the
// target, the others are still at the source.
func TestAskIsFollowed(t *testing.T) {
	c := sharedCluster(t)
	_, to := owners(t, c, 2000)
	testAsk(t, c, to, 2000)
}

// CLUSTER SLOTS tells nothing of a master without slots: until it has its first
// one, only ASK names it.
func TestAskToMasterWithoutSlots(t *testing.T) {
	c := sharedCluster(t)
	newcomer := emptyMaster(t, c)
	testAsk(t, c, newcomer, 4000)
	t.Run("reading from replicas", func(t *testing.T) {
		testAsk(t, c, newcomer, 4001, func(o *redis.ClusterOptions) { o.ReadOnly = true })
	})
}

// emptyMaster makes a master without slots of a replica, until the test ends.
func emptyMaster(t *testing.T, c *harness.Cluster) *harness.Node {
	t.Helper()
	masters, err := c.Masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	replicas, err := c.Replicas(t.Context(), masters[2])
	if err != nil || len(replicas) == 0 {
		t.Fatalf("replicas of %s: %v, %v", masters[2], replicas, err)
	}
	newcomer := replicas[0]
	tell(t, newcomer, "CLUSTER", "RESET", "SOFT")
	host, port, _ := strings.Cut(newcomer.Addr(), ":")
	bus := busPort(t, masters[0], newcomer)
	tell(t, masters[0], "CLUSTER", "MEET", host, port, bus)
	knowAll := func(role string) func() bool {
		return func() bool {
			for _, n := range c.Nodes() {
				for _, other := range c.Nodes() {
					line := nodeLine(t, n, other.ID())
					if !strings.Contains(line, " connected") || other == newcomer && !strings.Contains(line, role) {
						return false
					}
				}
			}
			return true
		}
	}
	eventually(t, "every node knows the newcomer as a master", knowAll("master"))
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tell(t, newcomer, "FLUSHALL")
		tell(t, newcomer, "CLUSTER", "REPLICATE", masters[2].ID())
		eventually(t, "the newcomer is a replica again", knowAll("slave"))
		if err := c.WaitReady(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return newcomer
}

// nodeLine is what n says of a node in CLUSTER NODES.
func nodeLine(t *testing.T, n *harness.Node, id string) string {
	t.Helper()
	for line := range strings.Lines(tell(t, n, "CLUSTER", "NODES").(string)) {
		if strings.HasPrefix(line, id) {
			return line
		}
	}
	return ""
}

func busPort(t *testing.T, at, n *harness.Node) string {
	t.Helper()
	_, bus, _ := strings.Cut(strings.Fields(nodeLine(t, at, n.ID()))[1], "@")
	bus, _, _ = strings.Cut(bus, ",")
	return bus
}

func testAsk(t *testing.T, c *harness.Cluster, to *harness.Node, slot int, change ...func(*redis.ClusterOptions)) {
	ctx := t.Context()
	from, _ := owners(t, c, slot)
	change = append(change, neverReload)
	b := connect(t, c, change...)
	stays, goes := keyIn(t, slot, "stays"), keyIn(t, slot, "goes")
	for _, key := range []string{stays, goes} {
		if _, err := b.Do(ctx, key, []string{"SET", key, "v"}); err != nil {
			t.Fatal(err)
		}
	}
	move, err := c.BeginMove(ctx, to, slot)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := move.Abort(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	host, port, _ := strings.Cut(to.Addr(), ":")
	tell(t, from, "MIGRATE", host, port, goes, "0", "5000")

	for _, w := range ways {
		for _, routing := range []string{stays, goes} { // the routing key is not always the command's
			t.Run(w.name+"/routed by "+map[string]string{stays: "a key that stays", goes: "a key that goes"}[routing], func(t *testing.T) {
				b := connect(t, c, change...) // that has not met the newcomer
				fresh := keyIn(t, slot, "fresh")
				for _, step := range []struct {
					cmd  []string
					want any
				}{
					{[]string{"GET", stays}, "v"},
					{[]string{"GET", goes}, "v"},
					{[]string{"GET", fresh}, nil},
					{[]string{"INCR", fresh}, int64(1)},
					{[]string{"GET", fresh}, "1"},
				} {
					if v, err := w.run(ctx, b, routing, step.cmd...); err != nil || v != step.want {
						t.Errorf("%q: got %v, %v, want %v", step.cmd, v, err, step.want)
					}
				}
				replies, err := to.Pipeline(ctx, []string{"ASKING"}, []string{"GET", fresh})
				if err != nil || replies[1] != "1" {
					t.Errorf("the new key is %v, %v at the target", replies, err)
				}
			})
		}
	}
	// A pipeline with commands for both sides, of several keys.
	t.Run("mixed pipeline", func(t *testing.T) {
		b := connect(t, c, change...)
		elsewhere := keyIn(t, (slot+8000)%slotmap.Slots, "elsewhere")
		got := b.Pipeline(ctx,
			[]string{stays, stays, goes, elsewhere, stays},
			[][]string{{"GET", goes}, {"GET", stays}, {"GET", goes}, {"GET", elsewhere}, {"SADD", goes, "x"}})
		if len(got) != 5 || fmt.Sprint(got[:4]) != "[v v v <nil>]" {
			t.Errorf("got %v", got)
		}
		if err, failed := got[4].(error); !failed || !strings.HasPrefix(err.Error(), "WRONGTYPE ") {
			t.Errorf("an error after ASK: got %v, want WRONGTYPE", got[4])
		}
	})
	t.Run("transaction", func(t *testing.T) {
		b := connect(t, c, change...)
		x := keyIn(t, slot, "x")
		list, err := b.Tx(ctx, stays, [][]string{{"GET", x}, {"SET", x, "1"}, {"INCR", x}, {"DEL", x}})
		if err != nil || fmt.Sprint(list) != "[<nil> OK 2 1]" {
			t.Errorf("all keys new: got %v, %v", list, err)
		}
		// Its keys are on both sides: the server refuses it for as long, and no
		// command of it may run on either.
		list, err = b.Tx(ctx, stays, [][]string{{"SET", stays, "torn"}, {"SET", goes, "torn"}})
		if err == nil {
			t.Errorf("keys on both sides: got %v and no error", list)
		}
		for _, key := range []string{stays, goes} {
			if v, err := b.Do(ctx, key, []string{"GET", key}); err != nil || v != "v" {
				t.Errorf("%s after the refused transaction: %v, %v", key, v, err)
			}
		}
	})
}

func move(t *testing.T, c *harness.Cluster, to *harness.Node, slots ...int) {
	t.Helper()
	if err := c.MoveSlots(context.Background(), to, slots...); err != nil {
		t.Fatal(err)
	}
}

// ran is how often a node has run a command, from its own statistics.
func ran(t *testing.T, n *harness.Node, command string) int {
	t.Helper()
	info, _ := tell(t, n, "INFO", "commandstats").(string)
	for line := range strings.Lines(info) {
		if stats, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			var calls int
			fmt.Sscan(strings.ReplaceAll(stats, ",", " "), &calls)
			return calls
		}
	}
	return 0
}

// movedCount is how many MOVED errors a node has said.
func movedCount(t *testing.T, n *harness.Node) int {
	t.Helper()
	info, _ := tell(t, n, "INFO", "errorstats").(string)
	for line := range strings.Lines(info) {
		if count, ok := strings.CutPrefix(line, "errorstat_MOVED:count="); ok {
			var n int
			fmt.Sscan(count, &n)
			return n
		}
	}
	return 0
}
