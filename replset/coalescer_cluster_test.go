package replset_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/slotmap"
)

// troubled is a cluster in memory, parts of which can be out of reach.
type troubled struct {
	replset.Backend
	mu      sync.Mutex
	trouble func(slot uint16) trouble
}

type trouble int

const (
	fine       trouble = iota
	refuses            // no connection
	losesReply         // the command runs
	hangs              // until the client's time-out, 1 s
	frozen             // until the caller gives up
)

func (b *troubled) set(trouble func(slot uint16) trouble) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trouble = trouble
}

// call runs a call in its slot's trouble.
func (b *troubled) call(ctx context.Context, key string, run func()) error {
	b.mu.Lock()
	is := fine
	if b.trouble != nil {
		is = b.trouble(slotmap.Slot(key))
	}
	b.mu.Unlock()
	switch is {
	case refuses:
		return errors.New("dial: connection refused")
	case hangs, frozen:
		var timeout <-chan time.Time
		if is == hangs {
			timeout = time.After(time.Second)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return errors.New("read: i/o timeout")
		}
	}
	run()
	if is == losesReply {
		return errors.New("read: connection reset")
	}
	return nil
}

func (b *troubled) Do(ctx context.Context, key string, cmd []string) (v any, err error) {
	if bad := b.call(ctx, key, func() { v, err = b.Backend.Do(ctx, key, cmd) }); bad != nil {
		return nil, bad
	}
	return v, err
}

func (b *troubled) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	replies := make([]any, len(cmds))
	for i, cmd := range cmds {
		v, err := b.Do(ctx, keys[i], cmd)
		if replies[i] = v; err != nil {
			replies[i] = err
		}
	}
	return replies
}

func (b *troubled) Tx(ctx context.Context, key string, cmds [][]string) (replies []any, err error) {
	if bad := b.call(ctx, key, func() { replies, err = b.Backend.Tx(ctx, key, cmds) }); bad != nil {
		return nil, bad
	}
	return replies, err
}

// newTroubled is a published, empty set in the slots (nil: in all) of a cluster
// that is well.
func newTroubled(t *testing.T, slots []uint16) (*troubled, *replset.Set) {
	t.Helper()
	b := &troubled{Backend: memory.New()}
	set, err := replset.New(b, "active", &replset.Options{Slots: slots})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Publish(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return b, set
}

// every is each n-th slot.
func every(n int) []uint16 {
	var slots []uint16
	for slot := 0; slot < slotmap.Slots; slot += n {
		slots = append(slots, uint16(slot))
	}
	return slots
}

func hold(t *testing.T, set *replset.Set, slots []uint16, want []string) {
	t.Helper()
	for _, slot := range slots {
		got, err := set.Members(t.Context(), slotmap.KeyForSlot("k", slot))
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Fatalf("slot %d: got %q, %v, want %q", slot, got, err, want)
		}
	}
}

func startCoalescer(t *testing.T, set *replset.Set, opts *replset.CoalescerOptions) *replset.Coalescer {
	t.Helper()
	c, err := replset.NewCoalescer(set, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// While a node is lost, the others get each change within the tick's time, and
// its slots get everything when it is back.
func TestCoalescerOneNodeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := every(500)
		b, set := newTroubled(t, slots)
		lost := func(slot uint16) bool { return slot < slotmap.Slots/3 }
		if lost(set.HomeSlot()) {
			t.Fatalf("the home slot %d is among those to lose: choose another name", set.HomeSlot())
		}
		c := startCoalescer(t, set, nil)
		b.set(func(slot uint16) trouble {
			if lost(slot) {
				return refuses
			}
			return fine
		})
		reached := slices.DeleteFunc(slices.Clone(slots), lost)
		var want []string
		for i := range 20 {
			m := fmt.Sprintf("%02d", i)
			want = append(want, m)
			if err := c.Add(m); err != nil {
				t.Fatal(err)
			}
			time.Sleep(750 * time.Millisecond) // the write under way, a tick, and the change's own write
			hold(t, set, reached, want)
		}
		b.set(nil)
		time.Sleep(750 * time.Millisecond)
		hold(t, set, slots, want)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A set that nobody has published yet keeps its changes waiting.
func TestCoalescerWaitsForPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := every(500)
		set, err := replset.New(memory.New(), "active", &replset.Options{Slots: slots})
		if err != nil {
			t.Fatal(err)
		}
		c := startCoalescer(t, set, nil)
		if err := errors.Join(c.Add("alice"), c.Remove("bob")); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(t.Context()); !errors.Is(err, replset.ErrReplicaMissing) || c.Pending() != 2 {
			t.Errorf("got %v, %d pending; want ErrReplicaMissing, 2", err, c.Pending())
		}
		if err := set.Publish(t.Context(), []string{"bob", "carol"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		hold(t, set, slots, []string{"alice", "carol"})
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Two processes with a Coalescer each, over one set, lose nothing.
func TestCoalescerTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots := every(500)
		b, set := newTroubled(t, slots)
		var want []string
		var wg sync.WaitGroup
		for _, name := range []string{"a", "b"} {
			other, err := replset.New(b, "active", &replset.Options{Slots: slots})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				want = append(want, fmt.Sprintf("%s%02d", name, i))
			}
			wg.Go(func() {
				c := startCoalescer(t, other, nil)
				for i := range 20 {
					if err := c.Add(fmt.Sprintf("%s%02d", name, i)); err != nil {
						t.Error(err)
					}
					time.Sleep(100 * time.Millisecond)
				}
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		hold(t, set, slots, want)
	})
}

// A cluster that does not answer holds Close up for a bounded time.
func TestCoalescerFrozenCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, set := newTroubled(t, every(500))
		c := startCoalescer(t, set, nil)
		b.set(func(uint16) trouble { return frozen })
		if err := c.Add("alice"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		start := time.Now()
		err := c.Close(t.Context())
		var unwritten *replset.UnwrittenError
		if !errors.As(err, &unwritten) || unwritten.Members != 1 {
			t.Errorf("got %v, want 1 member unwritten", err)
		}
		if took := time.Since(start); took > 2*time.Minute {
			t.Errorf("Close took %v", took)
		}
	})
}

// Under one trouble after another the set ends as the changes say, in all slots.
func TestCoalescerEndsAsChanged(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("SHARDKIT_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("try again: SHARDKIT_SEED=%d go test -race -run %s .", seed, t.Name())
	for _, tc := range []struct {
		name   string
		slots  []uint16
		phases int
	}{
		{"64 slots", every(256), 150},
		{"all slots", every(1), 6},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() && len(tc.slots) == slotmap.Slots {
				t.Skip("writing to all slots takes a while")
			}
			synctest.Test(t, func(t *testing.T) { endsAsChanged(t, rand.New(rand.NewPCG(seed, 0)), tc.slots, tc.phases) })
		})
	}
}

func endsAsChanged(t *testing.T, r *rand.Rand, slots []uint16, phases int) {
	b, set := newTroubled(t, slots)
	var mu sync.Mutex
	failures := map[string]int{}
	c := startCoalescer(t, set, &replset.CoalescerOptions{FlushAt: 20, OnFlush: func(s replset.FlushStats) {
		mu.Lock()
		defer mu.Unlock()
		var partial *replset.WriteError
		switch {
		case errors.As(s.Err, &partial):
			failures["slots"]++
		case s.Err != nil:
			failures["home"]++
		}
	}})
	model := map[string]struct{}{}
	for range phases {
		kind, share, salt := []trouble{fine, refuses, losesReply, hangs}[r.IntN(4)], r.IntN(4), uint16(r.Uint32())
		b.set(func(slot uint16) trouble { // none, some, a node's worth, the home slot too
			part := (slot * 40503) ^ salt
			if share == 1 && part%97 == 0 || share == 2 && slot > 11000 || share == 3 && (slot < 2000 || slot == set.HomeSlot()) {
				return kind
			}
			return fine
		})
		for range 5 {
			for range 1 + r.IntN(12) {
				m := fmt.Sprintf("%02d", r.IntN(40))
				change := c.Remove
				if delete(model, m); r.IntN(2) == 0 {
					change = c.Add
					model[m] = struct{}{}
				}
				if err := change(m); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
		}
	}
	b.set(nil)
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	hold(t, set, slots, slices.Sorted(maps.Keys(model)))
	mu.Lock()
	defer mu.Unlock()
	if len(slots) < slotmap.Slots && (failures["home"] == 0 || failures["slots"] == 0) {
		t.Errorf("flushes failed so: %v; want some of both kinds", failures)
	}
}
