package conformance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

var faultCases = []Case{
	{
		ID: "RS-201", Name: "moved-is-followed", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "a slot that has moved since the client read the slot map is found by MOVED, by every method; a keyless command goes to the new owner soon after",
		Run: func(t *T) {
			for i, w := range ways {
				slot := 1000 + i
				owner, other := t.owners(slot)
				b := t.warm(3e9)
				key := t.KeyIn(slot, "moved")
				t.Do(b, "SET", key, "v")
				t.move(other, slot)
				if v, err := w.run(t.ctx, b, key, "GET", key); err != nil || v != "v" {
					t.Fatalf("%s: GET after the move: got %v, %v, want v", w.name, v, err)
				}
				if v, err := w.run(t.ctx, b, key, "INCR", t.KeyIn(slot, "n")); err != nil || v != int64(1) {
					t.Errorf("%s: INCR after the move: got %v, %v, want 1", w.name, v, err)
				}
				t.Eventually(10e9, w.name+": CLUSTER MYID is answered by the new owner", func() bool {
					_, _ = b.Do(t.ctx, key, []string{"GET", key})
					v, err := w.run(t.ctx, b, key, "CLUSTER", "MYID")
					return err == nil && v == other.ID()
				})
				t.move(owner, slot)
			}
		},
	},
	{
		ID: "RS-202", Name: "pipeline-follows-each", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "in a pipeline, commands whose slots have moved are redirected, each done once, and the others are left as they are",
		Run: func(t *T) {
			var gone []int
			for slot := 3000; slot < 3200; slot += 4 {
				gone = append(gone, slot)
			}
			owner, other := t.owners(3000)
			b := t.warm(3e9)
			var keys []string
			var cmds [][]string
			for slot := 2900; slot < 3300; slot++ {
				key := t.KeyIn(slot, "p")
				keys, cmds = append(keys, key), append(cmds, []string{"INCRBY", key, fmt.Sprint(slot)})
			}
			t.move(other, gone...)
			wrong := 0
			replies := b.Pipeline(t.ctx, keys, cmds)
			if len(replies) != len(cmds) {
				t.Fatalf("%d elements for %d commands", len(replies), len(cmds))
			}
			for i, v := range replies {
				if v != int64(2900+i) {
					if wrong++; wrong <= 3 {
						t.Errorf("element %d: got %v, want %d", i, v, 2900+i)
					}
				}
			}
			t.move(owner, gone...)
		},
	},
	{
		ID: "RS-203", Name: "tx-is-redirected-whole", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "a Tx whose slot has moved runs once, at the new owner, and no command of it runs at the old one",
		Run: func(t *T) {
			const slot = 1100
			owner, other := t.owners(slot)
			a, z := t.KeyIn(slot, "a"), t.KeyIn(slot, "z")
			b := t.warm(3e9)
			t.move(other, slot)
			for _, n := range []*harness.Node{owner, other} {
				t.tell(n, "CONFIG", "RESETSTAT")
			}
			list, err := b.Tx(t.ctx, a, [][]string{{"SET", a, "1"}, {"SADD", z, "x"}, {"INCR", a}, {"SCARD", z}, {"SADD", a, "y"}})
			if err != nil || len(list) != 5 || fmt.Sprint(list[:4]) != "[OK 1 2 1]" {
				t.Fatalf("got %v, %v, want [OK 1 2 1] and an error in the fifth element", list, err)
			}
			if failed, ok := list[4].(error); !ok || code(failed) != "WRONGTYPE" {
				t.Errorf("SADD on a string in it: got %v, want WRONGTYPE", list[4])
			}
			for command, want := range map[string]int{"incr": 1, "sadd": 2} {
				if n := t.calls(other, command); n != want {
					t.Errorf("%s ran %d times at the new owner, want %d", command, n, want)
				}
			}
			if t.calls(other, "exec") == 0 {
				t.Errorf("the commands ran at the new owner without a transaction")
			}
			for _, command := range []string{"set", "sadd", "incr", "scard"} {
				if n := t.calls(owner, command); n != 0 {
					t.Errorf("%s ran %d times at the old owner", command, n)
				}
			}
			t.move(owner, slot)
		},
	},
	{
		ID: "RS-204", Name: "ask-is-followed", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "while a slot moves, keys that have gone and new ones are found by ASK at the target, the others at the source, by every method",
		Run:         askIsFollowed,
	},
	{
		ID: "RS-205", Name: "tx-is-never-split", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "a Tx whose keys a moving slot has on both sides is refused, and no command of it runs on either; where all of them are new it runs at the target",
		Run: func(t *T) {
			h := t.halfMoved(2100)
			list, err := h.b.Tx(t.ctx, h.stays, [][]string{{"SET", h.stays, "torn"}, {"SET", h.goes, "torn"}})
			if err == nil {
				t.Errorf("keys on both sides: got %v and no error", list)
			}
			for _, key := range []string{h.stays, h.goes} {
				if v, err := h.b.Do(t.ctx, key, []string{"GET", key}); err != nil || v != "v" {
					t.Errorf("%s after the refused Tx: got %v, %v, want v", key, v, err)
				}
			}
			x := t.KeyIn(2100, "x")
			if list, err := h.b.Tx(t.ctx, h.stays, [][]string{{"GET", x}, {"SET", x, "1"}, {"INCR", x}, {"DEL", x}}); err != nil || fmt.Sprint(list) != "[<nil> OK 2 1]" {
				t.Errorf("all keys new: got %v, %v, want [<nil> OK 2 1]", list, err)
			}
		},
	},
	{
		ID: "RS-206", Name: "redirects-are-bounded", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "redirects are followed a bounded number of times; then the redirect itself comes back as the error",
		Run: func(t *T) {
			const slot = 1200
			owner, other := t.owners(slot)
			key := t.KeyIn(slot, "loop")
			b := t.warm(3e9)
			// One side sends away what is not there, the other sends it back.
			t.tell(owner, "CLUSTER", "SETSLOT", fmt.Sprint(slot), "MIGRATING", other.ID())
			defer t.tell(owner, "CLUSTER", "SETSLOT", fmt.Sprint(slot), "STABLE")
			for _, w := range ways {
				ctx, cancel := context.WithTimeout(t.ctx, t.Scale(5*time.Second))
				v, err := w.run(ctx, b, key, "GET", key)
				cancel()
				if err == nil || code(err) != "MOVED" && code(err) != "ASK" {
					t.Fatalf("%s: GET where two nodes point at each other: got %v, %v, want MOVED or ASK", w.name, v, err)
				}
			}
		},
	},
	{
		ID: "RS-207", Name: "nothing-is-sent-twice", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "a command that timed out is an error, which does not read like a server's, and is not sent again: the server does it once at most when it comes back to life",
		Run: func(t *T) {
			const slot, patience = 5000, 150 * time.Millisecond
			for _, w := range ways {
				key := t.KeyIn(slot, w.name)
				t.Do(t.Backend(), "SET", key, "0")
				b := t.warm(patience)
				var err error
				if !t.frozen(slot, func() {
					ctx, cancel := context.WithTimeout(t.ctx, t.Scale(700*time.Millisecond))
					defer cancel()
					_, err = w.run(ctx, b, key, "INCR", key)
				}) {
					t.Broken("the replica of slot %d took over, so slow was the machine: whom INCR was sent to is not known", slot)
				}
				if err == nil {
					t.Fatalf("%s: INCR on a frozen node: no error", w.name)
				}
				if c := code(err); c != "" {
					t.Errorf("%s: INCR on a frozen node: the error %q reads like a server's %s", w.name, err, c)
				}
				// What was sent is done now, before what another connection asks later.
				t.Eventually(10e9, "the node answers again", func() bool {
					v, err := t.Backend().Do(t.ctx, key, []string{"INCRBY", key, "0"})
					if n, ok := v.(int64); ok && n > 1 {
						t.Fatalf("%s: INCR was done %d times, want once at most", w.name, n)
					}
					return err == nil
				})
			}
		},
	},
	{
		ID: "RS-208", Name: "cancellation-on-a-frozen-node", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "when the context ends while a node is silent, the method returns promptly, with an error for which errors.Is(err, ctx.Err()) holds",
		Run: func(t *T) {
			const slot = 5001
			key := t.KeyIn(slot, "k")
			b := t.warm(3e9)
			for _, w := range ways {
				t.Do(b, "SET", key, "v")
				t.Thrice(func() (wrong string) {
					t.frozen(slot, func() {
						ctx, cancel := context.WithTimeout(t.ctx, 50*time.Millisecond)
						defer cancel()
						start := time.Now()
						v, err := w.run(ctx, b, key, "GET", key)
						if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > t.Scale(600*time.Millisecond) {
							wrong = fmt.Sprintf("%s: got %v, %v after %v; 50ms were allowed", w.name, v, err, took)
						}
					})
					return wrong
				})
			}
		},
	},
	{
		ID: "RS-209", Name: "one-silent-node", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "in a pipeline over all nodes, one that is silent costs its own commands only",
		Run: func(t *T) {
			const slot = 5002
			t.Thrice(func() (wrong string) {
				silent, _ := t.owners(slot)
				b := t.warm(600 * time.Millisecond)
				var keys, on []string
				var cmds [][]string
				for slot := 2; slot < slotmap.Slots; slot += 1000 {
					owner, _ := t.owners(slot)
					key := t.KeyIn(slot, "p")
					keys, on, cmds = append(keys, key), append(on, owner.Name()), append(cmds, []string{"SET", key, "v"})
				}
				var got []any
				t.frozen(slot, func() {
					ctx, cancel := context.WithTimeout(t.ctx, t.Scale(5*time.Second))
					defer cancel()
					got = b.Pipeline(ctx, keys, cmds)
				})
				if len(got) != len(cmds) {
					t.Fatalf("%d elements for %d commands", len(got), len(cmds))
				}
				for i, v := range got {
					if err, failed := v.(error); failed != (on[i] == silent.Name()) || !failed && v != "OK" {
						wrong += fmt.Sprintf("element %d, of %s: got %v, %v; %s is frozen\n", i, on[i], v, err, silent.Name())
					}
				}
				return wrong
			})
		},
	},
	{
		ID: "RS-210", Name: "killed-master", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "when a master is killed and its replica takes over, writes to its slots succeed again within 15 s, by the same client",
		Run: func(t *T) {
			const slot = 7000
			owner, _ := t.owners(slot)
			replicas, err := t.Cluster().Replicas(t.ctx, owner)
			t.Need(err)
			if len(replicas) == 0 {
				t.Unavailable("the cluster has no replicas: nothing takes over")
			}
			key := t.KeyIn(slot, "k")
			b := t.warm(500 * time.Millisecond)
			set := func(value string) error {
				ctx, cancel := context.WithTimeout(t.ctx, t.Scale(time.Second))
				defer cancel()
				_, err := b.Do(ctx, key, []string{"SET", key, value})
				return err
			}
			t.Eventually(10e9, "a write succeeds before", func() bool { return set("before") == nil })
			t.quickFailover()
			t.Need(owner.Kill())
			t.Eventually(15e9, "a write succeeds after the master was killed", func() bool { return set("after") == nil })
			for _, w := range ways {
				t.Eventually(10e9, w.name+" gets the value afterwards", func() bool {
					v, err := w.run(t.ctx, b, key, "GET", key)
					if err == nil && v != "after" {
						t.Fatalf("%s afterwards: got %v, want after, which was acknowledged", w.name, v)
					}
					return err == nil
				})
			}
		},
	},
	{
		ID: "RS-211", Name: "reshard-under-a-set", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "while slots move back and forth, the home slot among them, a set's writes succeed and its reads get what was published: never a missing replica, half a write or an older one than before",
		Run:         reshardUnderASet,
	},
	{
		ID: "RS-212", Name: "scripts-forgotten", Profile: Replset, Level: Core, Tier: Fault,
		Requirement: "servers that forget their scripts in the middle of a write (SCRIPT FLUSH, a failover) do not fail it: NOSCRIPT comes back as the server's error",
		Run: func(t *T) {
			b, slots := t.Backend(), Spread(512)
			forget := func() {
				for _, n := range t.Cluster().Nodes() {
					if _, err := n.Do(t.ctx, "SCRIPT", "FLUSH"); err != nil {
						t.Errorf("SCRIPT FLUSH on %s: %v", n, err)
					}
				}
			}
			for i, as := range []func(replset.Backend) replset.Backend{asItIs, withoutKeylessScripts} {
				steps := 0
				s := t.Set(as(b), fmt.Sprint("set", i), replset.Options{Slots: slots, Progress: func(replset.Progress) {
					if steps++; steps%5 == 1 {
						forget()
					}
				}})
				forget()
				t.Publish(s, "a", "b")
				t.WantReplicas("after Publish", s, slots, "a", "b")
				if err := s.Apply(t.ctx, replset.Delta{Add: []string{"c"}, Remove: []string{"a"}}); err != nil {
					t.Fatalf("Apply: %v", err)
				}
				t.WantReplicas("after Apply", s, slots, "b", "c")
			}
		},
	},
}

// quickFailover has the cluster notice within a second, for the rest of the case, that a node is dead.
func (t *T) quickFailover() {
	const name = "cluster-node-timeout"
	for _, n := range t.Cluster().Nodes() {
		was, _ := t.tell(n, "CONFIG", "GET", name).([]any)
		if len(was) != 2 {
			t.Broken("CONFIG GET %s: %v", name, was)
		}
		t.tell(n, "CONFIG", "SET", name, "1000")
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), t.Scale(5*time.Second))
			defer cancel()
			_, _ = n.Do(ctx, "CONFIG", "SET", name, fmt.Sprint(was[1])) // the one that is dead starts with it
		})
	}
}

// owners returns the slot's master, and another.
func (t *T) owners(slot int) (owner, other *harness.Node) {
	owner, err := t.Cluster().Owner(t.ctx, slot)
	t.Need(err)
	masters, err := t.Cluster().Masters(t.ctx)
	t.Need(err)
	for _, n := range masters {
		if n != owner {
			return owner, n
		}
	}
	t.Unavailable("the cluster has one master")
	return nil, nil
}

func (t *T) move(to *harness.Node, slots ...int) {
	t.Need(t.Cluster().MoveSlots(t.ctx, to, slots...))
}

// tell runs a command on a node beside the backend.
func (t *T) tell(n *harness.Node, cmd ...string) any {
	v, err := n.Do(context.WithoutCancel(t.ctx), cmd...)
	t.Need(err)
	return v
}

// calls is how often a node has run a command, from its own statistics.
func (t *T) calls(n *harness.Node, command string) int {
	return statistic(t.tell(n, "INFO", "commandstats"), "cmdstat_"+command+":calls=")
}

// warm returns a backend over a client of its own that has read the slot map and has connections to all masters.
func (t *T) warm(patience time.Duration) replset.Backend {
	b := t.Connect(t.Scale(patience))
	for _, slot := range Spread(24) {
		key := t.KeyIn(int(slot), "warm")
		t.Eventually(10e9, "a client whose patience is short has a connection", func() bool {
			_, err := b.Do(t.ctx, key, []string{"GET", key})
			if err != nil && code(err) != "" {
				t.Fatalf("GET: %v", err)
			}
			return err == nil
		})
	}
	return b
}

// frozen runs f while the slot's master is frozen, and reports whether that is the master still: no failover is meant, f taking
// less than the node time-out as a rule.
func (t *T) frozen(slot int, f func()) (still bool) {
	n, _ := t.owners(slot)
	t.Need(t.Cluster().WaitReady(t.ctx))
	t.Need(n.Freeze())
	defer func() { // though f ends the case
		t.Need(n.Thaw())
		t.Need(t.Cluster().WaitReady(t.ctx))
		owner, _ := t.owners(slot)
		still = owner == n
	}()
	f()
	return still
}

// halfMoved is a slot on its way to another master, with a key on each side.
type halfMoved struct {
	b           replset.Backend
	to          *harness.Node
	stays, goes string
}

func (t *T) halfMoved(slot int) halfMoved {
	from, to := t.owners(slot)
	h := halfMoved{t.warm(3e9), to, t.KeyIn(slot, "stays"), t.KeyIn(slot, "goes")}
	for _, key := range []string{h.stays, h.goes} {
		t.Do(h.b, "SET", key, "v")
	}
	move, err := t.Cluster().BeginMove(t.ctx, to, slot)
	t.Need(err)
	t.Cleanup(func() {
		if err := move.Abort(context.WithoutCancel(t.ctx)); err != nil {
			t.Logf("ending the move: %v", err)
		}
	})
	host, port, err := net.SplitHostPort(to.Addr())
	t.Need(err)
	t.tell(from, "MIGRATE", host, port, h.goes, "0", "5000")
	return h
}

func askIsFollowed(t *T) {
	const slot = 2000
	h := t.halfMoved(slot)
	for _, w := range ways {
		for where, routing := range map[string]string{"a key that stays": h.stays, "a key that has gone": h.goes} {
			fresh := t.KeyIn(slot, "fresh:"+w.name+where)
			for _, step := range []struct {
				cmd  []string
				want any
			}{
				{[]string{"GET", h.stays}, "v"},
				{[]string{"GET", h.goes}, "v"},
				{[]string{"GET", fresh}, nil},
				{[]string{"INCR", fresh}, int64(1)},
				{[]string{"GET", fresh}, "1"},
			} {
				if v, err := w.run(t.ctx, h.b, routing, step.cmd...); err != nil || v != step.want {
					t.Errorf("%s, routed by %s: %q: got %v, %v, want %v", w.name, where, step.cmd, v, err, step.want)
				}
			}
			replies, err := h.to.Pipeline(t.ctx, []string{"ASKING"}, []string{"GET", fresh})
			if t.Need(err); replies[1] != "1" {
				t.Errorf("%s, routed by %s: the new key is %v at the target, want 1", w.name, where, replies[1])
			}
		}
	}
	elsewhere := t.KeyIn(slot+8000, "elsewhere")
	got := h.b.Pipeline(t.ctx,
		[]string{h.stays, h.stays, h.goes, elsewhere, h.stays},
		[][]string{{"GET", h.goes}, {"GET", h.stays}, {"GET", h.goes}, {"GET", elsewhere}, {"SADD", h.goes, "x"}})
	if len(got) != 5 || fmt.Sprint(got[:4]) != "[v v v <nil>]" {
		t.Fatalf("a pipeline for both sides: got %v, want [v v v <nil>] and an error", got)
	}
	if failed, ok := got[4].(error); !ok || code(failed) != "WRONGTYPE" {
		t.Errorf("an error after ASK: got %v, want WRONGTYPE", got[4])
	}
}

func reshardUnderASet(t *T) {
	slots := Spread(96)
	o := replset.Options{Slots: slots, Patience: t.Scale(20 * time.Second), ReadPatience: t.Scale(20 * time.Second)}
	s, reader := t.Set(t.Backend(), "set", o), t.Set(t.Connect(t.Scale(3*time.Second)), "set", o)
	owner, other := t.owners(int(s.HomeSlot()))
	moved := []int{int(s.HomeSlot())}
	for _, slot := range slots {
		if n, _ := t.owners(int(slot)); n == owner && slot != s.HomeSlot() && len(moved) < 24 {
			moved = append(moved, int(slot))
		}
	}
	// Each generation holds its number, and twenty members besides.
	generation := func(g int64) []string {
		members := []string{fmt.Sprint("generation ", g)}
		for i := range 20 {
			members = append(members, fmt.Sprint("member ", g, " ", i))
		}
		return members
	}
	t.Publish(s, generation(0)...)
	var newest atomic.Int64 // that any slot may hold
	ctx, stop := context.WithCancel(t.ctx)
	var others sync.WaitGroup
	defer func() { stop(); others.Wait() }()
	var reads, moves atomic.Int64
	others.Go(func() {
		rnd := t.Rand("reader")
		last := map[int]int64{}
		pace := time.NewTicker(2 * time.Millisecond)
		defer pace.Stop()
		for ; ctx.Err() == nil; reads.Add(1) {
			<-pace.C
			slot := moved[rnd.IntN(len(moved))]
			got, err := reader.Members(ctx, t.KeyIn(slot, "x"))
			if ctx.Err() != nil {
				return
			}
			g := int64(-1)
			for _, m := range got {
				_, _ = fmt.Sscanf(m, "generation %d", &g)
			}
			if err != nil || g < last[slot] || g > newest.Load() || sorted(got) != sorted(generation(g)) {
				t.Errorf("slot %d: a read gives %.200s, %v, after generation %d of %d", slot, sorted(got), err, last[slot], newest.Load())
				return
			}
			last[slot] = g
		}
	})
	others.Go(func() {
		to, back := other, owner
		for ; ctx.Err() == nil; moves.Add(1) {
			if err := t.Cluster().MoveSlots(context.WithoutCancel(ctx), to, moved...); err != nil {
				t.mu.Lock()
				t.ended = &ending{StatusError, ReasonSetup, err.Error()}
				t.mu.Unlock()
				return
			}
			to, back = back, to
		}
	})
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for start := time.Now(); time.Since(start) < time.Second || time.Since(start) < t.Scale(10*time.Second) && (moves.Load() < 4 || reads.Load() < 50); <-pace.C {
		newest.Add(1)
		if err := s.Publish(t.ctx, generation(newest.Load())); err != nil {
			t.Errorf("Publish while slots move: %v", err)
		}
		if t.Failed() {
			break
		}
	}
	stop()
	others.Wait()
	t.Logf("%d publishes and %d reads during %d moves of %d slots", newest.Load(), reads.Load(), moves.Load(), len(moved))
	if moves.Load() == 0 || reads.Load() == 0 {
		t.Broken("%d moves, %d reads: this shows nothing", moves.Load(), reads.Load())
	}
	t.move(owner, moved...)
	t.WantReplicas("in the end", s, append(slots, s.HomeSlot()), generation(newest.Load())...)
}
