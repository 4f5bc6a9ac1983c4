package scenarios

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/slotmap"
)

// whole fails unless each slot has one owner and each master has slots.
func whole(t *testing.T, l *layout) {
	t.Helper()
	var owners [slotmap.Slots]int
	for m, slots := range l.slots {
		if len(slots) == 0 {
			t.Fatalf("master %d of %d has no slots", m, len(l.slots))
		}
		for _, slot := range slots {
			owners[slot]++
			if l.owner[slot] != uint8(m) {
				t.Fatalf("slot %d is in the list of master %d, and noted as owned by %d", slot, m, l.owner[slot])
			}
		}
	}
	for slot, n := range owners {
		if n != 1 {
			t.Fatalf("slot %d has %d owners", slot, n)
		}
	}
}

func TestReshardsKeepEverySlotOwned(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, seed))
	l := evenLayout(3)
	whole(t, l)
	seen := map[reshard]int{}
	fewest, most := len(l.slots), len(l.slots)
	for range 1500 {
		before := len(l.slots)
		what := l.reshard(rng)
		seen[what]++
		whole(t, l)
		if grown := map[reshard]int{addMaster: 1, removeMaster: -1}[what]; len(l.slots) != before+grown {
			t.Fatalf("%d masters became %d by reshard %d", before, len(l.slots), what)
		}
		fewest, most = min(fewest, len(l.slots)), max(most, len(l.slots))
	}
	if fewest != fewestMasters || most != mostMasters {
		t.Errorf("masters went from %d to %d, want %d to %d", fewest, most, fewestMasters, mostMasters)
	}
	for _, what := range []reshard{addMaster, removeMaster, moveSlots} {
		if seen[what] < 250 {
			t.Errorf("reshard %d came up %d times of 1500", what, seen[what])
		}
	}
}

func TestSmallLayouts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	l := newLayout([]uint16{1}, []uint16{2}, []uint16{3, 4})
	l.add(rng)
	if len(l.slots) != 4 || len(l.slots[3]) != 1 || len(l.slots[2]) != 1 {
		t.Errorf("got %v, want the new master to get a slot from the one that has two", l.slots)
	}
	l = newLayout([]uint16{1}, []uint16{2}, []uint16{3, 4, 5})
	for range 50 {
		l.move(rng)
		for m, slots := range l.slots {
			if len(slots) == 0 {
				t.Fatalf("a move left master %d of %v without slots", m, l.slots)
			}
		}
	}
	l = newLayout([]uint16{10, 11}, []uint16{20}, []uint16{30})
	if got := l.holders([]uint16{11, 30}); !reflect.DeepEqual(got, []bool{true, false, true}) {
		t.Errorf("holders: got %v, want the first and the third", got)
	}
}

func TestCoverage(t *testing.T) {
	parts, err := Select(false, "coverage")
	if err != nil {
		t.Fatal(err)
	}
	results, err := Run(t.Context(), parts, nil, &Options{Seed: 42})
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	shares := map[string]map[string]float64{}
	for _, v := range results[0].Variants {
		shares[v.Name] = v.Counters
	}
	for _, tc := range []struct {
		placement, counter string
		low, high          float64
	}{
		{"one-key", SameSlot, 1.0 / slotmap.Slots, 1.0 / slotmap.Slots},
		{"one-key", SameNode, 1.0 / mostMasters, 1.0 / 2},
		{"one-key", Lost, 1, 1},
		{"one-per-node", SameNode, 1, 1}, // right after publishing
		{"one-per-node", SameSlot, 3.0 / slotmap.Slots, 12.0 / slotmap.Slots},
		{"one-per-node", LostByAdd, 1, 1},        // the new master has none, or took one that its owner had
		{"one-per-node", LostByRemove, 0, 0},     // those that stay keep theirs
		{"one-per-node", LostByMove, 0.35, 0.65}, // half of the source's slots leave, on average
		{"one-per-node", Lost, 0.4, 0.6},
		{"one-per-slot", SameNode, 1, 1},
		{"one-per-slot", SameSlot, 1, 1},
		{"one-per-slot", Lost, 0, 0},
	} {
		got := shares[tc.placement][tc.counter]
		if got < tc.low-1e-12 || got > tc.high+1e-12 {
			t.Errorf("%s, %s: got %v, want %v to %v", tc.placement, tc.counter, got, tc.low, tc.high)
		}
	}

	again, err := Run(t.Context(), parts, nil, &Options{Seed: 42})
	if err != nil || !reflect.DeepEqual(again[0].Variants, results[0].Variants) {
		t.Errorf("the same seed gave other shares: %v, %v", again[0].Variants, err)
	}
	other, err := Run(t.Context(), parts, nil, &Options{Seed: 43})
	if err != nil || reflect.DeepEqual(other[0].Variants, results[0].Variants) {
		t.Errorf("another seed gave the same shares: %v, %v", other[0].Variants, err)
	}
}

// What the counters stand on is the server's rule, which looks at slots and not at nodes.
func TestSameNodeIsNotEnough(t *testing.T) {
	_, c := target(t)
	rng := rand.New(rand.NewPCG(5, 5))
	for range 20 {
		slot := uint16(rng.IntN(slotmap.Slots))
		owner, err := c.Owner(t.Context(), int(slot))
		if err != nil {
			t.Fatal(err)
		}
		// Its neighbour is on the same node, except at the end of a range.
		neighbour := slot ^ 1
		if same, err := c.Owner(t.Context(), int(neighbour)); err != nil || same != owner {
			continue
		}
		key := slotmap.KeyForSlot("crossed-a", slot)
		for _, tc := range []struct {
			other string
			legal bool
		}{
			{slotmap.KeyForSlot("crossed-b", slot), true},
			{slotmap.KeyForSlot("crossed-b", neighbour), false},
		} {
			_, err := owner.Do(t.Context(), "SINTER", key, tc.other)
			refused := err != nil && strings.Contains(err.Error(), "CROSSSLOT")
			if tc.legal && err != nil || !tc.legal && !refused {
				t.Errorf("SINTER %s %s on %s: got %v, legal should be %v", key, tc.other, owner, err, tc.legal)
			}
		}
	}
}

func TestRangeConfidence(t *testing.T) {
	for n, want := range map[int]float64{5: 0.9375, 9: 0.99609375} {
		if got := rangeConfidence(n); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d rounds: got %v, want %v", n, got, want)
		}
	}
	// By experiment: how often the range of 5 misses the median.
	rng := rand.New(rand.NewPCG(9, 9))
	missed, trials := 0, 20_000
	for range trials {
		below := 0
		for range 5 {
			if rng.NormFloat64() < 0 {
				below++
			}
		}
		if below == 0 || below == 5 {
			missed++
		}
	}
	if share := float64(missed) / float64(trials); math.Abs(share-0.0625) > 0.01 {
		t.Errorf("the range of 5 misses the median %v of the time, want 0.0625", share)
	}
}
