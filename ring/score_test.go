package ring

import (
	"math"
	"testing"
)

func TestStrataArePermutation(t *testing.T) {
	rnd := random(t)
	for range times(2000) {
		d := draw(rnd.Uint64())
		undo := d.undo()
		var seen [strata]bool
		for place := range uint32(strata) {
			k := d.stratum(place)
			if k >= strata || seen[k] {
				t.Fatalf("draw %x: stratum %d of place %d is out of range or came before", uint64(d), k, place)
			}
			seen[k] = true
			if got := undo.place(k); got != place {
				t.Fatalf("draw %x: stratum %d of place %d leads back to %d", uint64(d), k, place, got)
			}
		}
	}
}

func TestLogTable(t *testing.T) {
	logs := logTable()
	for i := range strata {
		want := -math.Log2(1 - float64(i)/strata)
		if got := float64(logs[i]) / logUnit; math.Abs(got-want) > 4.0/logUnit {
			t.Errorf("entry %d: got %v, want %v", i, got, want)
		}
	}
}

// The chord lies above the curve by less than one part in 1000, but in the last strata, where the costs are that hardly ever win.
func TestLogError(t *testing.T) {
	logs := logTable()
	worst, mean := 0.0, 0.0
	for k := range strata {
		for _, offset := range []uint64{1, 1<<offsetBits/4 + 1, 1<<offsetBits/2 + 1, 1<<offsetBits - 1} {
			v := (float64(k) + float64(offset)/(1<<offsetBits)) / strata
			want := -math.Log1p(-v) * math.Log2E
			got := float64(log(logs[k], logs[k+1], offset)) / logUnit
			if k < strata-16 {
				worst = max(worst, math.Abs(got/want-1))
			}
			if got < want-1e-9 && k < strata-1 {
				t.Errorf("-log2(1 - %v): got %v, below %v", v, got, want)
			}
		}
		chord := (float64(logs[k]) + float64(logs[k+1])) / 2 / logUnit
		mean += chord / strata
	}
	t.Logf("worst relative error %.2g, mean %.6f", worst, mean)
	if worst > 1.0/1000 {
		t.Errorf("worst relative error: got %v, want at most 1/1000", worst)
	}
	// Of an exponential distribution in base 2.
	if math.Abs(mean-math.Log2E) > 2e-4*math.Log2E {
		t.Errorf("mean: got %v, want %v", mean, math.Log2E)
	}
}

func TestCostsRise(t *testing.T) {
	logs := logTable()
	for _, w := range []float64{minWeight, 0.3, 1, 7, maxWeight} {
		for _, offset := range []uint64{1, 1<<offsetBits - 1} {
			last := candidate(0)
			for k := range strata {
				c := newCandidate(log(logs[k], logs[k+1], offset), 1/w, 0)
				if c <= last || c.cost() <= 0 || math.IsInf(c.cost(), 0) {
					t.Fatalf("weight %v, stratum %d: cost %v after %v", w, k, c.cost(), last.cost())
				}
				last = c
			}
		}
	}
}
