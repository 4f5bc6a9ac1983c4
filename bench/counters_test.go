package bench

import (
	"context"
	"errors"
	"maps"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// ledger is a source whose totals operations add to.
type ledger struct {
	totals map[string]float64
	err    error
	calls  int
	each   func(*ledger)
}

func (l *ledger) Counters(context.Context) (map[string]float64, error) {
	l.calls++
	if l.each != nil {
		l.each(l)
	}
	return maps.Clone(l.totals), l.err
}

// keep makes allocations of operations escape.
var keep any

func countingScenario(l, own *ledger) Scenario {
	kind := func(name string, weight int, op Op) Kind {
		return Kind{Name: name, Weight: weight, Worker: func(int) (Op, error) { return op, nil }}
	}
	add := func(commands, bytes float64) Op {
		return func(context.Context) error {
			l.totals["commands"] += commands
			l.totals["bytes"] += bytes
			return nil
		}
	}
	return Scenario{Name: "test", Variants: []Variant{
		{Name: "mixed", Setup: func(context.Context, int) (*Subject, error) {
			s := &Subject{Kinds: []Kind{kind("get", 90, add(1, 40)), kind("set", 10, add(3, 100))}}
			return s, nil
		}},
		{Name: "allocating", Setup: func(context.Context, int) (*Subject, error) {
			s := &Subject{Kinds: []Kind{kind("op", 0, func(context.Context) error {
				keep = new([64]byte)
				keep = new([1024]byte)
				own.totals["hits"] += 0.5
				return nil
			})}, Counters: own}
			return s, nil
		}},
	}}
}

func TestCountersPerOperation(t *testing.T) {
	l, own := &ledger{totals: map[string]float64{"commands": 1e6, "bytes": 1e9}}, &ledger{totals: map[string]float64{"hits": 0}}
	// Something in the background adds to one sample of many: the median leaves it out.
	l.each = func(l *ledger) {
		if l.calls == 4 {
			l.totals["commands"] += 1000
		}
	}
	r := mustRun(t, countingScenario(l, own), &Options{Load: Load{Ops: 27, SkipWarmUp: true}, Counters: l})
	if len(r.Marks) != 0 {
		t.Errorf("marks: %v", r.Marks)
	}
	for name, want := range map[string]map[string]float64{
		// Exact, because a slice is made of whole decks of 9 gets and a set.
		"mixed":      {"commands": 1.2, "bytes": 46},
		"mixed'":     {"commands": 1.2, "bytes": 46},
		"allocating": {"commands": 0, "bytes": 0, "hits": 0.5, AllocsPerOp: 2, BytesPerOp: 64 + 1024},
	} {
		got := r.Variant(name).Counters
		for counter, n := range want {
			// The runtime may allocate something of its own meanwhile.
			tolerance := 1e-9
			if counter == AllocsPerOp || counter == BytesPerOp {
				tolerance = 0.1 * n
			}
			if math.Abs(got[counter]-n) > tolerance {
				t.Errorf("%s: %s per operation: got %v, want %v", name, counter, got[counter], n)
			}
		}
	}
	if allocs := r.Variant("mixed").Counters[AllocsPerOp]; allocs > 0.1 {
		t.Errorf("an operation that allocates nothing is charged %v allocations", allocs)
	}
	if _, ok := r.Variant("mixed").Counters["hits"]; ok {
		t.Error("a variant has another one's counter")
	}
	// 5 slices of each of 3 variants, before and after.
	if l.calls != 30 {
		t.Errorf("the source was asked %d times, want 30", l.calls)
	}
}

func TestCounterTroubleMakesTheResultPartial(t *testing.T) {
	for _, test := range []struct {
		name string
		each func(*ledger)
		own  map[string]float64
		want string
	}{
		{"error", func(l *ledger) { l.err = errors.New("no route to host") }, nil, `counters of variant "mixed": no route to host`},
		{"restart", func(l *ledger) { l.totals["commands"] = 100 - float64(l.calls) }, nil, `counter "commands" went down`},
		{"two of a name", nil, map[string]float64{"bytes": 1}, "two sources have a counter named bytes: rename one"},
		{"reserved", func(l *ledger) { l.totals[AllocsPerOp] = 1 }, nil, "two sources have a counter named allocs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, own := &ledger{totals: map[string]float64{}, each: test.each}, &ledger{totals: map[string]float64{}}
			if test.own != nil {
				l.totals["bytes"] = 0
				own.totals = test.own
			}
			r := mustRun(t, countingScenario(l, own), &Options{Load: Load{Ops: 27, SkipWarmUp: true}, Counters: l})
			if len(r.Marks) != 1 || !r.Is(Partial) || !strings.Contains(r.Marks[0].Reason, test.want) {
				t.Errorf("marks: got %v, want one partial that holds %q", r.Marks, test.want)
			}
			if r.Variants[0].Response.Count == 0 {
				t.Error("the latencies are gone too")
			}
		})
	}
}

// Slow operations end a slice early, after one of each kind at least.
func TestCountingSlicesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			op   time.Duration
			want int
		}{{120 * time.Millisecond, 2}, {2 * time.Second, 1}, {time.Microsecond, 400}} {
			n := 0
			op := func(context.Context) error {
				n++
				time.Sleep(test.op)
				return nil
			}
			mustRun(t, one(op), &Options{Load: Load{Ops: 20, SkipWarmUp: true}})
			if counted := n - 20; counted != countSlices*test.want {
				t.Errorf("operations of %v: counted %d, want %d slices of %d", test.op, counted, countSlices, test.want)
			}
		}
	})
}
