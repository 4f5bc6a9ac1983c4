package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
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

		pace := time.Millisecond // of a reader, and four of them for the writer
		enough := int64(300)
		if os.Getenv("SHARDKIT_LONG") == "1" {
			pace, enough = 0, 10_000
		}
		if os.Getenv("SHARDKIT_IDLE") == "1" {
			pace, enough = 0, 50_000
		}
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
					time.Sleep(pace)
				}
			})
		}
		var moves atomic.Int64
		others.Go(func() {
			for to := other; ctx.Err() == nil; moves.Add(1) {
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
		for moves.Load() < 6 || writes < 3 || reads.Load() < enough {
			if t.Failed() {
				break
			}
			published.Add(1)
			if err := s.Publish(t.Context(), generation(published.Load())); err != nil {
				t.Errorf("publish during the reshard: %v", err)
				break
			}
			writes++
			time.Sleep(4 * pace)
		}
		stop()
		others.Wait()
		t.Logf("%d publishes and %d reads during %d moves of %d slots", writes, reads.Load(), moves.Load(), len(moved))
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

// held is a set one of whose slots is held half-way between two masters.
type held struct {
	name   string
	b      replset.Backend
	s      *replset.Set
	slot   uint16
	slots  []uint16
	gone   []string // of the replica's keys, those that have moved already
	before []string // what is published before the move
	writes bool     // whether the slot can be written meanwhile
}

// Slots are held half-way between two masters. What of the replica has gone
// already decides what can be done there; what cannot is named, what is read is
// never wrong, and once the move has ended all is well.
func TestSlotHeldHalfWay(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	const first = 4242
	owner, other := owners(t, c, first)
	backends := map[string]replset.Backend{}
	for _, client := range clients {
		backends[client.name] = open(t, client.name, c)
	}
	var cases []*held
	add := func(h *held, client string, rung int) {
		h.name = strings.ReplaceAll(fmt.Sprint(h.name, "/", rungs[rung].name, "/", client), " ", "-")
		h.b = backends[client]
		h.slots = []uint16{h.slot, 9000, 15000} // of the others, none moves
		setName := fmt.Sprint(name(t), len(cases))
		if h.slot == 0 { // the home slot is to move: one of the same master's
			for n := 0; ; n++ {
				setName = fmt.Sprint(name(t), len(cases), "-", n)
				if h.slot = slotmap.Slot(setName); h.slot > 2000 && h.slot < first {
					break
				}
			}
			h.slots[0] = h.slot
		}
		var err error
		h.s, err = replset.New(rungs[rung].wrap(h.b), setName, &replset.Options{Slots: h.slots, Patience: 50 * time.Millisecond, ReadPatience: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		cases = append(cases, h)
	}
	slot := uint16(first)
	for rung := range rungs {
		for i, state := range []held{
			{name: "nothing has gone", before: []string{"a", "b"}, writes: true},
			{name: "the replica has gone", gone: []string{""}, before: []string{"a", "b"}},
			{name: "the stamp has gone", gone: []string{stampSuffix}, before: []string{"a", "b"}},
			{name: "both have gone", gone: []string{"", stampSuffix}, before: []string{"a", "b"}, writes: true},
			{name: "an empty set"},
			{name: "an empty set has gone", gone: []string{stampSuffix}},
		} {
			for _, client := range clients {
				h := state
				h.slot = slot + uint16(i)
				add(&h, client.name, rung)
				slot += 6
			}
		}
		for _, client := range clients { // which gives the numbers, and moves like any other
			add(&held{name: "the home slot", before: []string{"a", "b"}, writes: true}, client.name, rung)
		}
	}
	var slots []int
	for _, h := range cases {
		publish(t, h.s, h.before...)
		slots = append(slots, int(h.slot))
	}
	move, err := c.BeginMove(t.Context(), other, slots...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.MoveSlots(context.Background(), owner, slots...); err != nil {
			t.Error(err)
		}
	}()
	host, port, _ := strings.Cut(other.Addr(), ":")
	for _, h := range cases {
		for _, suffix := range h.gone {
			if _, err := owner.Do(t.Context(), "MIGRATE", host, port, slotmap.KeyForSlot(h.s.Name(), h.slot)+suffix, "0", "5000"); err != nil {
				t.Fatal(err)
			}
		}
	}
	var waiting sync.WaitGroup
	for _, h := range cases { // all at once: most of the time they wait
		waiting.Go(func() { h.meanwhile(t) })
	}
	waiting.Wait()
	if err := move.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, h := range cases {
		within(t, time.Minute, h.name+" is published after the move", func() bool { return h.s.Publish(t.Context(), []string{"z"}) == nil })
		wantReplicas(t, h.b, h.s, h.slots, "z")
	}
}

// meanwhile reads and writes the set while its slot is held.
func (h *held) meanwhile(t *testing.T) {
	near := slotmap.KeyForSlot("x", h.slot)
	wantRead := func(when string, members ...string) {
		t.Helper()
		got, err := h.s.Members(t.Context(), near)
		if err != nil && !errors.Is(err, replset.ErrSlotMoving) || err == nil && sorted(got) != sorted(members) {
			t.Errorf("%s: %s: Members: got %s, %v, want %s", h.name, when, sorted(got), err, sorted(members))
		}
	}
	wantRead("before a write", h.before...)
	current := h.before
	for _, w := range []struct {
		op    string
		write func() error
		after []string
	}{
		{"publish", func() error { return h.s.Publish(t.Context(), []string{"b", "c"}) }, []string{"b", "c"}},
		{"add", func() error { return h.s.Add(t.Context(), "d", "b") }, []string{"b", "c", "d"}},
		{"remove", func() error { return h.s.Remove(t.Context(), "c") }, []string{"b", "d"}},
		{"publish empty", func() error { return h.s.Publish(t.Context(), nil) }, nil},
	} {
		err := w.write()
		// A lease that was not given back in time, as on a busy machine, ends by itself.
		for deadline := time.Now().Add(time.Minute); h.writes && errors.Is(err, replset.ErrContended) && time.Now().Before(deadline); {
			err = w.write()
		}
		var partly *replset.WriteError
		switch {
		case err == nil:
			current = w.after
		case h.writes:
			t.Errorf("%s: %s: %v", h.name, w.op, err)
		case !errors.As(err, &partly) || len(partly.Failed) != 1 || partly.Failed[0].Slot != h.slot:
			t.Errorf("%s: %s: got %v, want slot %d named alone", h.name, w.op, err, h.slot)
		}
		wantRead("after "+w.op, current...)
	}
}

// A node script must not touch a replica in a slot that is moving away: DEL works
// there and SADD after it does not. Nobody makes good here what it did.
func TestNodeScriptLeavesAMovingSlotAlone(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	const slot = 4321
	before, during := []string{"a", "b"}, []string{"b", "c"}
	eachClient(t, c, func(t *testing.T, plain replset.Backend) {
		_, other := owners(t, c, slot)
		b := &stuck{Backend: plain}
		s, err := replset.New(b, name(t), &replset.Options{Slots: []uint16{slot - 1, slot}, Patience: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		publish(t, s)
		publish(t, s, before...) // the same stamp is everywhere now
		move, err := c.BeginMove(t.Context(), other, slot)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := move.Finish(context.Background()); err != nil {
				t.Error(err)
			}
			owner, _ := owners(t, c, slot-1)
			if err := c.MoveSlots(context.Background(), owner, slot); err != nil {
				t.Error(err)
			}
		}()
		b.alone.Store(true)
		var partly *replset.WriteError
		err = s.Publish(t.Context(), during)
		if !errors.As(err, &partly) || len(partly.Failed) != 1 || partly.Failed[0].Slot != slot {
			t.Errorf("got %v, want slot %d named alone", err, slot)
		}
		for near, want := range map[uint16][]string{slot: before, slot - 1: during} {
			got, err := s.Members(t.Context(), slotmap.KeyForSlot("x", near))
			if err != nil || sorted(got) != sorted(want) {
				t.Errorf("slot %d: got %q, %v, want %q", near, got, err, want)
			}
		}
	})
}

// stuck is a backend whose node scripts write member by member on every server, and
// once they are alone nothing else writes to replicas.
type stuck struct {
	replset.Backend
	alone atomic.Bool
}

func (s *stuck) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if i := slices.Index(cmd, "auto"); i > 0 && isScript(cmd) {
		cmd = slices.Clone(cmd)
		cmd[i] = "members"
	}
	return s.Backend.Do(ctx, key, cmd)
}

func (s *stuck) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	if !s.alone.Load() {
		return s.Backend.Pipeline(ctx, keys, cmds)
	}
	return slices.Repeat([]any{errors.New("read tcp: connection reset by peer")}, len(cmds))
}
