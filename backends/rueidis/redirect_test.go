package rueidisbackend

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/harness"
)

// A slot that moved since the map was read is found by MOVED, by each method,
// and the map is right afterwards.
func TestOldMapIsCorrectedByMoved(t *testing.T) {
	c := sharedCluster(t)
	for i, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			slot := uint16(1000 + i)
			owner, other := masters(t, c, slot)
			b := connect(t, c)
			key := keyIn(b, slot, "moved")
			if _, err := b.Do(t.Context(), key, []string{"SET", key, "v"}); err != nil {
				t.Fatal(err)
			}
			if err := c.MoveSlots(t.Context(), other, int(slot)); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.MoveSlots(context.Background(), owner, int(slot)); err != nil {
					t.Fatal(err)
				}
			}()
			if at := *b.slots.owner(slot); at != owner.Addr() {
				t.Fatalf("the map says %s before it was used, want the old owner %s", at, owner.Addr())
			}
			if v, err := w.run(t.Context(), b, key, "GET", key); err != nil || v != "v" {
				t.Errorf("GET: got %v, %v", v, err)
			}
			if at := *b.slots.owner(slot); at != other.Addr() {
				t.Errorf("afterwards the map says %s, want %s", at, other.Addr())
			}
			// A keyless command gets no MOVED, and follows the corrected map.
			if v, err := w.run(t.Context(), b, key, "CLUSTER", "MYID"); err != nil || v != other.ID() {
				t.Errorf("CLUSTER MYID: got %v, %v, want %s", v, err, other.ID())
			}
		})
	}
}

// A pipeline whose map is wrong for two thirds of its commands, because the
// slots moved or because their master is gone, sends these again and no other.
func TestPipelineFollowsEachCommand(t *testing.T) {
	c := sharedCluster(t)
	b := connect(t, c)
	warm(t, b)
	gone := "127.0.0.1:1"
	var keys []string
	var incr, del [][]string
	for slot := uint16(0); slot < slotCount; slot += 64 {
		key := keyIn(b, slot, "pipe")
		keys = append(keys, key)
		incr, del = append(incr, []string{"INCR", key}), append(del, []string{"DEL", key})
		switch slot / 64 % 3 {
		case 0:
			b.slots.moved(slot, *b.slots.owner((slot + slotCount/3) % slotCount))
		case 1:
			b.slots.moved(slot, gone)
		}
	}
	for _, cmds := range [][][]string{incr, del} {
		for i, v := range b.Pipeline(t.Context(), keys, cmds) {
			if v != int64(1) {
				t.Fatalf("%q: got %v, want 1", cmds[i], v)
			}
		}
	}
}

// Commands that were held back by the old map never find it half corrected.
func TestReadingReplacesTheMapWhole(t *testing.T) {
	c := sharedCluster(t)
	b := connect(t, c)
	warm(t, b)
	const slot, gone = 7000, "127.0.0.1:1"
	owner, _ := masters(t, c, slot)
	b.slots.moved(slot, gone)
	old := b.slots.table.Load()
	eventually(t, "the map is right", func() bool {
		b.reload()
		return *b.slots.owner(slot) == owner.Addr()
	})
	if at := *old.owner[slot].Load(); at != gone {
		t.Errorf("the reading wrote %s into the table that it replaced", at)
	}
}

// While a slot moves, keys that have gone or never were are found by ASK.
func TestAskIsFollowed(t *testing.T) {
	c := sharedCluster(t)
	const slot = 2000
	_, to := masters(t, c, slot)
	testAsk(t, c, to, slot)
}

// CLUSTER SLOTS names no master without slots, so until its first slot has come
// only ASK tells of it: neither rueidis nor this package has heard of it.
func TestMasterWithoutSlots(t *testing.T) {
	newcomer, c := clusterWithEmptyMaster(t)
	t.Run("unknown", func(t *testing.T) {
		testAsk(t, c, newcomer, 3000, func(o *rueidis.ClientOption) { o.InitAddress = c.Addrs()[:1] })
	})
	t.Run("named in InitAddress", func(t *testing.T) {
		testAsk(t, c, newcomer, 3000) // rueidis is connected to it, but hides it
	})
	testFirstSlot(t, c, newcomer)
}

// clusterWithEmptyMaster makes a master without slots of a replica.
func clusterWithEmptyMaster(t *testing.T) (*harness.Node, *harness.Cluster) {
	t.Helper()
	c := privateCluster(t, harness.Options{
		Masters: 2, Replicas: 1, NodeTimeout: 2 * time.Second,
		Args: []string{"--cluster-allow-replica-migration", "no"}, // or it becomes a replica with its last slot gone
	})
	nodes := c.Nodes()
	newcomer := nodes[len(nodes)-1]
	tell(t, newcomer, "CLUSTER", "RESET", "SOFT")
	host, port, _ := strings.Cut(newcomer.Addr(), ":")
	busPort := ""
	for line := range strings.Lines(tell(t, nodes[0], "CLUSTER", "NODES").(string)) {
		if strings.HasPrefix(line, newcomer.ID()) {
			_, bus, _ := strings.Cut(strings.Fields(line)[1], "@")
			busPort, _, _ = strings.Cut(bus, ",")
		}
	}
	tell(t, nodes[0], "CLUSTER", "MEET", host, port, busPort)
	eventually(t, "every node knows the newcomer as a master", func() bool {
		for _, n := range nodes {
			for _, other := range nodes {
				known := false
				for line := range strings.Lines(tell(t, n, "CLUSTER", "NODES").(string)) {
					known = known || strings.HasPrefix(line, other.ID()) && strings.Contains(line, " connected") &&
						(other != newcomer || strings.Contains(line, "master"))
				}
				if !known {
					return false
				}
			}
		}
		return true
	})
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return newcomer, c
}

func testAsk(t *testing.T, c *harness.Cluster, to *harness.Node, slot uint16, change ...func(*rueidis.ClientOption)) {
	from, err := c.Owner(t.Context(), int(slot))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	b := connect(t, c, change...)
	stays, goes := keyIn(b, slot, "stays"), keyIn(b, slot, "goes")
	for _, key := range []string{stays, goes} {
		if _, err := b.Do(ctx, key, []string{"SET", key, "v"}); err != nil {
			t.Fatal(err)
		}
	}
	move, err := c.BeginMove(ctx, to, int(slot))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := move.Abort(context.Background()); err != nil {
			t.Error(err)
		}
		tell(t, from, "DEL", stays)
		tell(t, from, "DEL", goes)
	}()
	host, port, _ := strings.Cut(to.Addr(), ":")
	tell(t, from, "MIGRATE", host, port, goes, "0", "5000")

	// at reads a key where it is, without the backend.
	at := func(n *harness.Node, key string) any {
		t.Helper()
		replies, err := n.Pipeline(ctx, []string{"ASKING"}, []string{"GET", key})
		if err != nil {
			t.Fatal(err)
		}
		return replies[1]
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			b := connect(t, c, change...) // which has not met the newcomer
			if v, err := w.run(ctx, b, stays, "GET", stays); err != nil || v != "v" {
				t.Errorf("a key that has not gone: got %v, %v", v, err)
			}
			if v, err := w.run(ctx, b, goes, "GET", goes); err != nil || v != "v" {
				t.Errorf("a key that has gone: got %v, %v", v, err)
			}
			fresh := keyIn(b, slot, "fresh"+w.name)
			if v, err := w.run(ctx, b, fresh, "INCR", fresh); err != nil || v != int64(1) {
				t.Errorf("a new key: got %v, %v", v, err)
			}
			if v := at(to, fresh); v != "1" {
				t.Errorf("the new key is %v where it belongs", v)
			}
			if addr := *b.slots.owner(slot); addr != from.Addr() {
				t.Errorf("ASK changed the slot's owner in the map to %s", addr)
			}
			if _, err := w.run(ctx, b, stays, "MGET", stays, goes); err == nil || !strings.HasPrefix(err.Error(), "TRYAGAIN ") {
				t.Errorf("keys on both sides: got %v, want TRYAGAIN", err)
			}
			if v, err := w.run(ctx, b, fresh, "DEL", fresh); err != nil || v != int64(1) {
				t.Errorf("DEL: got %v, %v", v, err)
			}
		})
	}
	t.Run("whole transaction", func(t *testing.T) {
		b := connect(t, c, change...)
		x := keyIn(b, slot, "x")
		list, err := b.Tx(ctx, x, [][]string{{"GET", x}, {"SET", x, "1"}, {"INCR", x}, {"DEL", x}})
		if err != nil || fmt.Sprint(list) != "[<nil> OK 2 1]" {
			t.Errorf("got %v, %v", list, err)
		}
		// One command could run at the source and the rest at the target: none must.
		list, err = b.Tx(ctx, stays, [][]string{{"SET", stays, "changed"}, {"SET", x, "changed"}})
		if err == nil {
			t.Errorf("keys on both sides: got %v", list)
		}
		if v := at(from, stays); v != "v" {
			t.Errorf("%q became %v in a transaction that failed", stays, v)
		}
	})
	t.Run("pipeline", func(t *testing.T) {
		b := connect(t, c, change...)
		far := keyIn(b, slot+1, "")
		keys := []string{stays, goes, far, goes, stays}
		var cmds [][]string
		for _, key := range keys {
			cmds = append(cmds, []string{"GET", key})
		}
		if got := b.Pipeline(ctx, keys, cmds); fmt.Sprint(got) != "[v v <nil> v v]" {
			t.Errorf("got %v", got)
		}
	})
}

// A reader never finds the replica deleted while others replace it with an old
// map: the transaction runs whole where it is redirected to, or not at all.
// rueidis's cluster client would send DEL and SADD after MULTI on its own.
func TestReaderNeverSeesHalfATransaction(t *testing.T) {
	c := sharedCluster(t)
	const slot = 4000
	b := connect(t, c)
	key := keyIn(b, slot, "replica")
	owner, other := masters(t, c, slot)
	wrong := other.Addr()
	replace := [][]string{{"DEL", key}, {"SADD", key, "a", "b", "c"}}
	if _, err := b.Tx(t.Context(), key, replace); err != nil {
		t.Fatal(err)
	}

	writing, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	reader := b.client.Nodes()[owner.Addr()]
	reads := 0
	readers.Go(func() {
		for ; writing.Err() == nil; reads++ {
			n, err := reader.Do(context.Background(), reader.B().Arbitrary("SCARD", key).Build()).AsInt64()
			if err != nil || n != 3 {
				t.Errorf("read %d: the replica has %d members, %v", reads, n, err)
				return
			}
		}
	})
	const rounds = 400
	for range rounds {
		b.slots.moved(slot, wrong)
		if list, err := b.Tx(t.Context(), key, replace); err != nil || list[1] != int64(3) {
			t.Errorf("Tx: got %v, %v", list, err)
		}
	}
	stop()
	readers.Wait()
	if reads < rounds/4 {
		t.Errorf("only %d reads beside %d writes: the test saw nothing", reads, rounds)
	}
	tell(t, owner, "DEL", key)
}

// A live move under load: every transaction that is acknowledged is whole, and
// every write lands once.
func TestMoveUnderLoad(t *testing.T) {
	c := sharedCluster(t)
	const first, slots = 5000, 20
	b := connect(t, c)
	_, other := masters(t, c, first)
	owner, _ := masters(t, c, first)
	working, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	wrote := map[string]int64{}
	tags := make([]string, slots)
	for i := range tags {
		tags[i] = keyIn(b, uint16(first+i), "")
	}
	for w := range 4 {
		workers.Go(func() {
			for i := 0; working.Err() == nil; i++ {
				key := fmt.Sprint(tags[(w*7+i)%slots], "load", w)
				list, err := b.Tx(context.Background(), key, [][]string{{"INCR", key}, {"INCR", key + ":twin"}})
				switch {
				case err != nil && strings.HasPrefix(err.Error(), "TRYAGAIN "): // none ran
					mu.Lock()
					refused++
					mu.Unlock()
				case err != nil || list[0] != list[1]:
					t.Errorf("Tx: got %v, %v", list, err)
					return
				default:
					mu.Lock()
					wrote[key]++
					if list[0] != wrote[key] {
						t.Errorf("%q: the reply is %v to write %d", key, list[0], wrote[key])
					}
					mu.Unlock()
				}
			}
		})
	}
	var moved []int
	for s := range slots {
		moved = append(moved, first+s)
	}
	for _, to := range []*harness.Node{other, owner} {
		if err := c.MoveSlots(t.Context(), to, moved...); err != nil {
			t.Error(err)
		}
		if err := c.WaitReady(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()
	workers.Wait()
	total := int64(0)
	for key, n := range wrote {
		total += n
		if v, err := b.Do(t.Context(), key, []string{"GETDEL", key}); err != nil || v != fmt.Sprint(n) {
			t.Errorf("%q is %v after %d writes, %v", key, v, n, err)
		}
		if v, err := b.Do(t.Context(), key, []string{"GETDEL", key + ":twin"}); err != nil || v != fmt.Sprint(n) {
			t.Errorf("%q's twin is %v after %d writes, %v", key, v, n, err)
		}
	}
	t.Logf("%d transactions and %d TRYAGAIN during two moves of %d slots", total, refused, slots)
}

// testFirstSlot gives the newcomer its first slot for good.
func testFirstSlot(t *testing.T, c *harness.Cluster, newcomer *harness.Node) {
	for name, addrs := range map[string][]string{"unknown": c.Addrs()[:1], "named in InitAddress": c.Addrs()} {
		t.Run("owner/"+name, func(t *testing.T) {
			b := connect(t, c, func(o *rueidis.ClientOption) { o.InitAddress = addrs })
			warm(t, b)
			home, _ := masters(t, c, 3000)
			if err := c.MoveSlots(t.Context(), newcomer, 3000); err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.MoveSlots(context.Background(), home, 3000); err != nil {
					t.Error(err)
				}
			}()
			key := keyIn(b, 3000, "")
			for _, w := range ways {
				if _, err := w.run(t.Context(), b, key, "INCR", key); err != nil {
					t.Errorf("%s: %v", w.name, err)
				}
				if v, err := w.run(t.Context(), b, key, "CLUSTER", "MYID"); err != nil || v != newcomer.ID() {
					t.Errorf("%s: keyless: got %v, %v, want %s", w.name, v, err, newcomer.ID())
				}
			}
		})
	}
}
