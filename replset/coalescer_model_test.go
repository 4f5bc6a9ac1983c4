package replset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// badCluster stands for a Set whose cluster fails at random: writes get lost on
// their way there or on their way back, at the home slot and at others. Slot 0
// is the home slot.
type badCluster struct {
	mu    sync.Mutex
	r     *rand.Rand
	well  bool // nothing fails any more
	slots [8]map[string]bool
	at    [8]int // the last write that each slot holds
}

func (b *badCluster) Apply(ctx context.Context, d Delta) error {
	return b.write(ctx, []uint16{1, 2, 3, 4, 5, 6, 7}, d)
}

func (b *badCluster) resync(ctx context.Context, _ string, slots []uint16) error {
	return b.write(ctx, slots, Delta{})
}

func (b *badCluster) write(ctx context.Context, slots []uint16, d Delta) error {
	b.mu.Lock()
	took, home := time.Duration(b.r.IntN(300))*time.Millisecond, b.outcome()
	b.mu.Unlock()
	if err := slowly(took)(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if home == lostThere {
		return errTickHome
	}
	if len(d.Add)+len(d.Remove) > 0 {
		b.at[0]++
		for _, m := range d.Add {
			b.slots[0][m] = true
		}
		for _, m := range d.Remove {
			delete(b.slots[0], m)
		}
	}
	if home == lostBack {
		return errTickHome
	}
	var failed []uint16
	for _, slot := range slots {
		got := b.outcome()
		if got != lostThere {
			b.slots[slot], b.at[slot] = maps.Clone(b.slots[0]), b.at[0]
		}
		if got != arrives {
			failed = append(failed, slot)
		}
	}
	if failed != nil {
		return behindAt(failed...)
	}
	return nil
}

const (
	arrives = iota
	lostThere
	lostBack
)

func (b *badCluster) outcome() int {
	if b.well || b.r.IntN(4) > 0 {
		return arrives
	}
	return lostThere + b.r.IntN(2)
}

// differs says where the slots do not hold what is wanted of the members that
// begin with prefix.
func (b *badCluster) differs(prefix string, want map[string]bool) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for slot, held := range b.slots {
		for i := range modelMembers {
			m := prefix + strconv.Itoa(i)
			if held[m] != want[m] {
				return fmt.Sprintf("slot %d: member %s: got %t, want %t", slot, m, held[m], want[m])
			}
		}
	}
	return ""
}

const modelMembers = 12

// Whatever fails on the way, a Flush or Close without error means that all slots
// hold what was asked for. Several goroutines change members of their own, so
// each knows what they must be.
func TestCoalescerModel(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("SHARDKIT_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("try again: SHARDKIT_SEED=%d go test -race -run %s .", seed, t.Name())
	const writers, steps = 4, 1500
	synctest.Test(t, func(t *testing.T) {
		cluster := &badCluster{r: rand.New(rand.NewPCG(seed, 0))}
		for i := range cluster.slots {
			cluster.slots[i] = map[string]bool{}
		}
		var mu sync.Mutex
		var sum, accepted, flushed int
		opts, err := (&CoalescerOptions{FlushAt: 8, MaxPending: writers*modelMembers - 10, OnFlush: func(s FlushStats) {
			mu.Lock()
			defer mu.Unlock()
			sum += s.Added + s.Removed + s.Absorbed
		}}).withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		c := newCoalescer(cluster, cluster, 250*time.Millisecond, opts)

		models := make([]map[string]bool, writers)
		var wg sync.WaitGroup
		for w := range writers {
			prefix := string(rune('a' + w))
			r, model := rand.New(rand.NewPCG(seed, uint64(w+1))), map[string]bool{}
			models[w] = model
			wg.Go(func() {
				for range steps {
					members := make([]string, 1+r.IntN(3))
					for i := range members {
						members[i] = prefix + strconv.Itoa(r.IntN(modelMembers))
					}
					add, change := r.IntN(2) == 0, c.Remove
					if add {
						change = c.Add
					}
					err := change(members...)
					mu.Lock()
					if err == nil {
						accepted += len(members)
						for _, m := range members {
							model[m] = add
						}
					} else if !errors.Is(err, ErrCoalescerFull) {
						t.Error(err)
					}
					mu.Unlock()
					if c.Pending() > opts.MaxPending {
						t.Errorf("got %d pending, want at most %d", c.Pending(), opts.MaxPending)
					}
					time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
					if r.IntN(20) > 0 {
						continue
					}
					if err := c.Flush(t.Context()); err == nil {
						mu.Lock()
						flushed++
						mu.Unlock()
						if d := cluster.differs(prefix, model); d != "" {
							t.Errorf("after Flush: %s", d)
						}
					}
				}
			})
		}
		wg.Wait()
		cluster.mu.Lock()
		cluster.well = true
		cluster.mu.Unlock()
		// A write may still take longer than the bound, so several may be needed.
		for range 20 {
			if err = c.Flush(t.Context()); err == nil {
				break
			}
		}
		if err := errors.Join(err, c.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		for w, model := range models {
			if d := cluster.differs(string(rune('a'+w)), model); d != "" {
				t.Errorf("after Close: %s", d)
			}
		}
		if sum != accepted || c.Pending() != 0 {
			t.Errorf("flushes tell of %d changes, %d were accepted; %d pending", sum, accepted, c.Pending())
		}
		if flushed == 0 {
			t.Error("no Flush succeeded before the cluster was well")
		}
	})
}
