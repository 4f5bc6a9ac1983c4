package bench

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// calls counts operations by variant, and notes the order in which variants were called.
type calls struct {
	n     map[string]int
	order []string
}

func (c *calls) variant(name string, d time.Duration) Variant {
	return Func(name, func(context.Context) error {
		c.n[name]++
		c.order = append(c.order, name)
		time.Sleep(d)
		return nil
	})
}

func TestVariantsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := calls{n: map[string]int{}}
		s := Scenario{Name: "test", Variants: []Variant{c.variant("a", time.Millisecond), c.variant("b", 2*time.Millisecond)}}
		r := mustRun(t, s, &Options{Load: Load{Ops: 3 * 9 * 100, SkipWarmUp: true}, SkipCounters: true})

		if len(r.Variants) != 3 || r.Variants[2].Name != "a'" || !r.Variants[2].Twin {
			t.Fatalf("variants: %+v, want a, b and a'", r.Variants)
		}
		for _, v := range r.Variants {
			if v.Response.Count != 900 {
				t.Errorf("%s did %d operations, want 900", v.Name, v.Response.Count)
			}
		}
		if c.n["a"] != 1800 || c.n["b"] != 900 {
			t.Errorf("got %v calls, want 1800 of a, as it runs twice, and 900 of b", c.n)
		}
		// 100 operations a round are slices of 40, 40 and 20: no stretch of b is longer than two slices in a row.
		longest, run := 0, 0
		for _, name := range c.order {
			run++
			if name != "b" {
				run = 0
			}
			longest = max(longest, run)
		}
		if longest < 40 || longest > 80 {
			t.Errorf("the longest stretch of b is %d, want 40 to 80", longest)
		}
		near(t, "rate of b", r.Variant("b").Rate, 500, 0.001)
		near(t, "rate of a", r.Variant("a").Rate, 1000, 0.001)

		b := r.Comparison("b", "response_p50")
		near(t, "ratio of b", b.Ratio, 2, 0.002)
		if b.Verdict != Slower || b.Rounds != 9 || b.Baseline != "a" {
			t.Errorf("got %+v, want slower than a in 9 rounds", b)
		}
		if a := r.Comparison("a'", "response_p50"); !a.Twin || a.Ratio != 1 || a.Verdict != Same || a.Floor > 0.002 {
			t.Errorf("got %+v, want the twin to be the same", a)
		}
		if r.Comparison("b", "response_p99") != nil {
			t.Error("there is a p99 ratio of rounds with 100 operations")
		}
		if r.Comparison("b", "service_p50") != nil || r.Variants[0].Service != nil {
			t.Error("a closed loop tells service time apart")
		}
	})
}

func TestDurationBoundsAClosedLoop(t *testing.T) {
	for _, test := range []struct {
		name    string
		op      time.Duration
		workers int
		longest time.Duration
	}{
		{"fast", 100 * time.Microsecond, 1, 3015 * time.Millisecond},
		{"several workers", 100 * time.Microsecond, 8, 3015 * time.Millisecond},
		// Each of 9 rounds is one turn: 2 variants and the twin.
		{"slow", 200 * time.Millisecond, 1, 9 * 600 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := Scenario{Name: "test", Variants: []Variant{Func("a", sleeper(test.op)), Func("b", sleeper(test.op))}}
				o := &Options{Load: Load{Duration: 3 * time.Second, Workers: test.workers, SkipWarmUp: true}, SkipCounters: true}
				r := mustRun(t, s, o)
				if took := r.Ended.Sub(r.Measured); took < 3*time.Second || took > test.longest {
					t.Errorf("took %v, want 3s to %v", took, test.longest)
				}
				for _, v := range r.Variants {
					near(t, "rate of "+v.Name, v.Rate, float64(test.workers)/test.op.Seconds(), 0.01)
					if v.Response.Count < 9 {
						t.Errorf("%s did %d operations, want one a round at least", v.Name, v.Response.Count)
					}
				}
				if c := r.Comparison("b", "response_p50"); c.Rounds != 9 || c.Verdict != Same {
					t.Errorf("got %v in %d rounds, want the same in 9", c, c.Rounds)
				}
			})
		})
	}
}

func TestWorkersHaveTheirOwnOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers = 5
		var inside, most atomic.Int32
		counts := make([]int, workers) // no lock: the race detector would tell if two workers shared one
		v := Variant{Name: "a", Setup: func(_ context.Context, n int) (*Subject, error) {
			if n != workers {
				t.Errorf("set up for %d workers, want %d", n, workers)
			}
			return &Subject{Kinds: []Kind{{Name: "op", Worker: func(w int) (Op, error) {
				return func(context.Context) error {
					most.Store(max(most.Load(), inside.Add(1)))
					time.Sleep(time.Millisecond)
					inside.Add(-1)
					counts[w]++
					return nil
				}, nil
			}}}}, nil
		}}
		s := Scenario{Name: "test", Variants: []Variant{v}}
		r := mustRun(t, s, &Options{Load: Load{Workers: workers, Ops: 1003, SkipWarmUp: true}, SkipCounters: true})
		if r.Variants[0].Response.Count != 1003 {
			t.Errorf("got %d operations, want 1003", r.Variants[0].Response.Count)
		}
		if most.Load() != workers {
			t.Errorf("at most %d worked at a time, want %d", most.Load(), workers)
		}
		for w, n := range counts {
			if n != 201 && n != 200 {
				t.Errorf("worker %d did %d, want 200 or 201", w, n)
			}
		}
	})
}

func TestKindsAreMixedByWeight(t *testing.T) {
	for _, mode := range []Mode{Closed, Open} {
		synctest.Test(t, func(t *testing.T) {
			kind := func(name string, weight int, d time.Duration) Kind {
				return Kind{Name: name, Weight: weight, Worker: func(int) (Op, error) { return sleeper(d), nil }}
			}
			v := Variant{Name: "a", Setup: func(context.Context, int) (*Subject, error) {
				return &Subject{Kinds: []Kind{kind("get", 90, time.Millisecond), kind("set", 10, 3*time.Millisecond)}}, nil
			}}
			l := Load{Mode: mode, Workers: 8, Ops: 10_000, SkipWarmUp: true}
			if mode == Open {
				l.Rate = 1000
			}
			r := mustRun(t, Scenario{Name: "test", Variants: []Variant{v}}, inBubble(&Options{Load: l, Seed: 7, SkipCounters: true}))
			get, set := r.Variants[0].Kinds[0], r.Variants[0].Kinds[1]
			near(t, "gets", float64(get.Response.Count), 9000, 0.02)
			if get.Response.Count+set.Response.Count != 10_000 {
				t.Errorf("kinds add up to %d, want 10000", get.Response.Count+set.Response.Count)
			}
			near(t, "get p50", float64(get.Response.P50), 1e6, 0.001)
			near(t, "set p50", float64(set.Response.P50), 3e6, 0.001)
		})
	}
}
