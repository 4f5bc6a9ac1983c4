package ring

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestRemap(t *testing.T) {
	const keys = 100_000
	before := mustNew(t, Nodes(numbered(3)...), nil)
	after := must(t)(before.With(Node{"shard-4", 1}))
	moved := 0
	for i := range keys {
		key := fmt.Sprintf("key-%d", i)
		if from, to := before.Locate(key), after.Locate(key); from != to {
			moved++
			if to != "shard-4" {
				t.Fatalf("%s moved from %s to %s, want to shard-4", key, from, to)
			}
		}
	}
	got := float64(moved) / keys * 100
	t.Logf("shard-1 to shard-3, and shard-4: %.2f %% of %d keys moved", got, keys)
	if math.Abs(got-25) > 0.4 {
		t.Errorf("got %.2f %% moved, want 25.0 +-0.4 %%", got)
	}

	rnd := random(t)
	sets := max(times(200), 20)
	mean := 0.0
	for range sets {
		names := randomNames(rnd, 4)
		three := mustNew(t, Nodes(names[:3]...), nil)
		change, err := Diff(three, must(t)(three.With(Node{names[3], 1})))
		if err != nil {
			t.Fatal(err)
		}
		mean += change.Moved / float64(sets) * 100
	}
	t.Logf("three nodes and a fourth, %d sets: %.3f %% moved on average", sets, mean)
	if margin := 0.1 * math.Sqrt(200/float64(sets)); math.Abs(mean-25) > margin {
		t.Errorf("got %.3f %% moved on average, want 25.0 +-%.2f %%", mean, margin)
	}
}

// The promise of the table: a key moves to what came, from what went, and nowhere else. Every cell is compared.
func TestNoKeyMovesBetweenUnchangedNodes(t *testing.T) {
	for _, c := range []struct {
		placement Placement
		n         int
	}{
		{Table{Buckets: 1 << 14}, times(9000)},
		{Table{}, times(1000)},
		{Classic{VirtualNodes: 40}, times(1000)},
	} {
		t.Run(fmt.Sprintf("%T", c.placement), func(t *testing.T) {
			rnd := random(t)
			for range c.n {
				before := mustNew(t, randomNodes(rnd, 2+rnd.IntN(11)), &Options{Placement: c.placement})
				after, changed := randomChange(t, rnd, before)
				if from, to := movedBetweenOthers(t, before, after, changed); from != "" {
					t.Fatalf("%q changed in %v, and keys moved from %q to %q", changed, before.Nodes(), from, to)
				}
			}
			t.Logf("%d memberships, one change each: no key moved between unchanged nodes", c.n)
		})
	}
}

// movedBetweenOthers returns two nodes other than the changed one between which a key moved.
func movedBetweenOthers(t *testing.T, before, after *Ring, changed string) (from, to string) {
	if before.circle != nil {
		change, err := Diff(before, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range change.Moves {
			if m.From != changed && m.To != changed {
				return m.From, m.To
			}
		}
		return "", ""
	}
	// Diff would do, and takes longer than making the tables.
	numbers := make([]uint16, before.Len()) // in after, of the nodes of before
	for i := range numbers {
		j, _ := after.Find(before.Name(i))
		numbers[i] = uint16(j)
	}
	came, ok := after.Find(changed)
	if !ok {
		came = -1
	}
	for b, owner := range before.owners {
		if now := after.owners[b]; now != numbers[owner] && before.Name(int(owner)) != changed && int(now) != came {
			return before.Name(int(owner)), after.Name(int(now))
		}
	}
	return "", ""
}

// randomChange adds a node, takes one out, or changes a weight, and names the node.
func randomChange(t *testing.T, rnd *rand.Rand, r *Ring) (*Ring, string) {
	name := r.Name(rnd.IntN(r.Len()))
	weight := math.Exp2(rnd.Float64()*4 - 2)
	switch rnd.IntN(3) {
	case 0:
		return must(t)(r.Without(name)), name
	case 1:
		return must(t)(r.WithWeight(name, weight)), name
	}
	name = fmt.Sprintf("new-%d", rnd.Uint32())
	return must(t)(r.With(Node{name, weight})), name
}

func TestDiff(t *testing.T) {
	r := mustNew(t, Nodes("a", "b", "c"), nil)
	same, err := Diff(r, mustNew(t, Nodes("c", "b", "a"), nil))
	if err != nil || same.Moved != 0 || same.Moves != nil {
		t.Errorf("the same ring: got %v, %v, want nothing moved", same, err)
	}

	// c gone: what it had, to the two others.
	shares := r.Shares()
	c, err := Diff(r, must(t)(r.Without("c")))
	if err != nil {
		t.Fatal(err)
	}
	if c.Moved != shares[2] || len(c.Moves) != 2 || c.Moves[0].To != "a" || c.Moves[1].To != "b" ||
		c.Moves[0].From != "c" || c.Moves[1].From != "c" || c.Moves[0].Share+c.Moves[1].Share != c.Moved {
		t.Errorf("without c, which had %v: got %+v", shares[2], c)
	}

	// Down is gone, for the keys.
	down, err := Diff(r, must(t)(r.WithDown("c")))
	if err != nil || fmt.Sprint(down) != fmt.Sprint(c) {
		t.Errorf("c down: got %+v, %v, want %+v", down, err, c)
	}

	// Tables of two sizes agree on no more than chance: of three nodes two thirds move.
	for _, bits := range []int{14, 18} {
		c, err := Diff(r, mustNew(t, Nodes("a", "b", "c"), &Options{Placement: Table{Buckets: 1 << bits}}))
		if err != nil || math.Abs(c.Moved-2.0/3) > 0.02 || len(c.Moves) != 6 {
			t.Errorf("1<<16 buckets and 1<<%d: got %+v, %v", bits, c, err)
		}
	}

	for _, opts := range []*Options{{Placement: Classic{}}, {HashTags: true}} {
		if _, err := Diff(r, mustNew(t, Nodes("a", "b", "c"), opts)); err == nil {
			t.Errorf("%+v: got no error for rings that hash keys differently", opts)
		}
	}
}

// Diff against counting keys, on circles whose arcs do not coincide.
func TestDiffOfCircles(t *testing.T) {
	before := mustNew(t, Nodes("a", "b", "c"), &Options{Placement: Classic{}})
	after := must(t)(before.With(Node{"d", 2}))
	c, err := Diff(before, after)
	if err != nil {
		t.Fatal(err)
	}
	const keys = 200_000
	counted := map[string]float64{}
	for i := range keys {
		key := fmt.Sprintf("key-%d", i)
		if from, to := before.Locate(key), after.Locate(key); from != to {
			counted[from+" "+to] += 1.0 / keys
		}
	}
	sum := 0.0
	for _, m := range c.Moves {
		sum += m.Share
		if got := counted[m.From+" "+m.To]; math.Abs(got-m.Share) > 0.005 {
			t.Errorf("%s to %s: Diff says %.4f, keys say %.4f", m.From, m.To, m.Share, got)
		}
	}
	if len(counted) != len(c.Moves) || math.Abs(sum-c.Moved) > 1e-12 {
		t.Errorf("got %+v, keys say %v", c, counted)
	}
	total := 0.0
	for _, s := range after.Shares() {
		total += s
	}
	if math.Abs(total-1) > 1e-12 {
		t.Errorf("shares sum to %v, want 1", total)
	}
}
