package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// While slots move back and forth, the home slot among them, writers succeed,
// and readers get what was published: never a missing replica, never half a
// write, never an older one than before.
func TestLiveReshard(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		slots := some(96)
		s := newSet(t, b, replset.Options{Slots: slots, ReadPatience: 20 * time.Second, Patience: 20 * time.Second})
		home := s.HomeSlot()
		owner, other := owners(t, c, int(home))
		moved := []int{int(home)}
		for _, slot := range slots { // those that home's master owns
			if n, _ := owners(t, c, int(slot)); n == owner && slot != home {
				moved = append(moved, int(slot))
			}
		}
		reader, err := replset.New(open(t, readerFor(t), c), s.Name(), &replset.Options{Slots: slots, ReadPatience: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		// Each generation holds its number and 20 members besides.
		generation := func(g int64) []string {
			members := []string{fmt.Sprint("gen-", g)}
			for i := range 20 {
				members = append(members, fmt.Sprint("gen-", g, "-", i))
			}
			return members
		}
		publish(t, s, generation(0)...)

		ctx, stop := context.WithCancel(t.Context())
		var others sync.WaitGroup
		var reads atomic.Int64
		var published atomic.Int64 // the newest generation that any slot may hold
		for r := range 2 {
			rnd := rand.New(rand.NewPCG(uint64(r), 7))
			others.Go(func() {
				last := map[int]int64{}
				for ctx.Err() == nil {
					slot := moved[rnd.IntN(len(moved))]
					got, err := reader.Members(ctx, slotmap.KeyForSlot("x", uint16(slot)))
					newest := published.Load()
					switch {
					case ctx.Err() != nil:
						return
					case err != nil:
						t.Errorf("slot %d: %v", slot, err)
						return
					}
					g := int64(-1)
					for _, m := range got {
						if strings.Count(m, "-") == 1 {
							fmt.Sscanf(m, "gen-%d", &g)
						}
					}
					if g < last[slot] || g > newest || sorted(got) != sorted(generation(g)) {
						t.Errorf("slot %d: %.300s, which was never published, or after generation %d; the newest is %d", slot, sorted(got), last[slot], newest)
						return
					}
					last[slot] = g
					reads.Add(1)
				}
			})
		}
		moves := 0
		others.Go(func() {
			for to := other; ctx.Err() == nil; moves++ {
				if err := c.MoveSlots(context.WithoutCancel(ctx), to, moved...); err != nil {
					t.Errorf("the reshard itself: %v", err)
					return
				}
				if to == other {
					to = owner
				} else {
					to = other
				}
			}
		})
		writes := 0
		for start := time.Now(); time.Since(start) < 2*time.Second || writes < 3; writes++ {
			published.Add(1)
			if err := s.Publish(t.Context(), generation(published.Load())); err != nil {
				t.Errorf("publish during the reshard: %v", err)
				break
			}
		}
		stop()
		others.Wait()
		t.Logf("%d publishes and %d reads during %d moves of %d slots", writes, reads.Load(), moves, len(moved))
		if moves == 0 || reads.Load() == 0 {
			t.Errorf("%d moves, %d reads: the test shows nothing", moves, reads.Load())
		}
		if err := c.MoveSlots(t.Context(), owner, moved...); err != nil {
			t.Fatal(err)
		}
		wantReplicas(t, b, s, append(slots, home), generation(published.Load())...)
	})
}

// readerFor is the other client: readers and writers need not use the same.
func readerFor(t *testing.T) string {
	if strings.HasSuffix(t.Name(), "/goredis") {
		return "rueidis"
	}
	return "goredis"
}

// owners returns the slot's master, and another.
func owners(t *testing.T, c *harness.Cluster, slot int) (owner, other *harness.Node) {
	t.Helper()
	owner, err := c.Owner(t.Context(), slot)
	if err != nil {
		t.Fatal(err)
	}
	masters, err := c.Masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range masters {
		if n != owner {
			return owner, n
		}
	}
	t.Fatal("the cluster has one master")
	return nil, nil
}

// A slot is held half-way between two masters. What of the replica has gone
// already decides what can be done there; what cannot is named, what is read is
// never wrong, and once the move has ended all is well.
func TestSlotHeldHalfWay(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	// The home slot, which gives the numbers, moves like any other.
	for i, rung := range rungs {
		t.Run("home/"+strings.ReplaceAll(rung.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			b := open(t, clients[i%len(clients)].name, c)
			heldHalfWay(t, c, b, rung.wrap(b), slotmap.Slot(name(t)), nil, []string{"a", "b"}, true)
		})
	}
	slot := uint16(4242)
	for _, gone := range []struct {
		name   string
		keys   []string // that have moved already
		before []string // what is published before the move
		writes bool     // whether the slot can be written meanwhile
	}{
		{"nothing has gone", nil, []string{"a", "b"}, true},
		{"the replica has gone", []string{""}, []string{"a", "b"}, false},
		{"the stamp has gone", []string{stampSuffix}, []string{"a", "b"}, false},
		{"both have gone", []string{"", stampSuffix}, []string{"a", "b"}, true},
		{"an empty set", nil, []string{}, false},
		{"an empty set has gone", []string{stampSuffix}, []string{}, false},
	} {
		for i, rung := range rungs {
			for _, client := range clients {
				switch {
				case i > 0 && client.name != clients[0].name: // the rungs differ little between clients
					continue
				case i > 0 && i < len(rungs)-1 && !gone.writes: // and scripts little where none runs; each case waits a second
					continue
				}
				slot++
				at := slot
				t.Run(strings.ReplaceAll(gone.name+"/"+rung.name+"/"+client.name, " ", "-"), func(t *testing.T) {
					t.Parallel()
					b := open(t, client.name, c)
					heldHalfWay(t, c, b, rung.wrap(b), at, gone.keys, gone.before, gone.writes)
				})
			}
		}
	}
}

func heldHalfWay(t *testing.T, c *harness.Cluster, b, wrapped replset.Backend, slot uint16, gone, before []string, writes bool) {
	slots := []uint16{slot, 4000, 9000, 15000}
	s := newSet(t, wrapped, replset.Options{Slots: slots, Patience: 50 * time.Millisecond, ReadPatience: time.Second})
	within(t, 10*time.Second, "published", func() bool { return s.Publish(t.Context(), before) == nil })
	owner, other := owners(t, c, int(slot))
	move, err := c.BeginMove(t.Context(), other, int(slot))
	if err != nil {
		t.Fatal(err)
	}
	finished := false
	defer func() {
		if !finished {
			_ = move.Finish(context.Background())
		}
		if err := c.MoveSlots(context.Background(), owner, int(slot)); err != nil {
			t.Error(err)
		}
	}()
	key := slotmap.KeyForSlot(s.Name(), slot)
	host, port, _ := strings.Cut(other.Addr(), ":")
	for _, suffix := range gone {
		if _, err := owner.Do(t.Context(), "MIGRATE", host, port, key+suffix, "0", "5000"); err != nil {
			t.Fatal(err)
		}
	}
	near := slotmap.KeyForSlot("x", slot)
	wantRead := func(when string, members ...string) {
		t.Helper()
		got, err := s.Members(t.Context(), near)
		if err != nil && !errors.Is(err, replset.ErrSlotMoving) || err == nil && sorted(got) != sorted(members) {
			t.Errorf("%s: Members: got %s, %v, want %s", when, sorted(got), err, sorted(members))
		}
		if err != nil {
			t.Logf("%s: %v", when, err)
		}
	}
	wantRead("before a write", before...)

	current := before
	for _, w := range []struct {
		op    string
		write func() error
		after []string
	}{
		{"publish", func() error { return s.Publish(t.Context(), []string{"b", "c"}) }, []string{"b", "c"}},
		{"add", func() error { return s.Add(t.Context(), "d", "b") }, []string{"b", "c", "d"}},
		{"remove", func() error { return s.Remove(t.Context(), "c") }, []string{"b", "d"}},
		{"publish empty", func() error { return s.Publish(t.Context(), nil) }, nil},
	} {
		err := w.write()
		var partly *replset.WriteError
		switch {
		case err == nil:
			current = w.after
		case writes:
			t.Errorf("%s: %v", w.op, err)
		case !errors.As(err, &partly) || len(partly.Failed) != 1 || partly.Failed[0].Slot != slot:
			t.Errorf("%s: got %v, want slot %d named alone", w.op, err, slot)
		}
		wantRead("after "+w.op, current...)
	}

	if err := move.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	finished = true
	within(t, 10*time.Second, "published after the move", func() bool { return s.Publish(t.Context(), []string{"z"}) == nil })
	wantReplicas(t, b, s, slots, "z")
}
