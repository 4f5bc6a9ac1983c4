package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		x    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 3, 2, 1}, 2.5}} {
		if got := median(test.x); got != test.want {
			t.Errorf("median of %v: got %v, want %v", test.x, got, test.want)
		}
	}
}

// An interval that is said to hold the truth 99 times of 100 must do so.
func TestBootstrapIntervalCoversTheTruth(t *testing.T) {
	const truth, trials = 0.25, 50
	for name, noise := range map[string]func(*rand.Rand) float64{
		"normal":      func(r *rand.Rand) float64 { return 0.1 * r.NormFloat64() },
		"heavy tails": func(r *rand.Rand) float64 { return 0.1 * math.Tan(math.Pi*(r.Float64()-0.5)) },
	} {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			missed := 0
			for range trials {
				x := make([]float64, 9)
				for i := range x {
					x[i] = truth + noise(rng)
				}
				mid, low, high := bootstrap(x, 0.99, rng)
				if low > mid || mid > high {
					t.Fatalf("%v: interval %v to %v does not hold the median %v", x, low, high, mid)
				}
				if truth < low || truth > high {
					missed++
				}
			}
			if missed > trials/50 {
				t.Errorf("missed the truth %d times of %d, want 1 of 100 at most", missed, trials)
			}
		})
	}
}

func TestStudentQuantile(t *testing.T) {
	// From any printed table.
	for _, test := range []struct{ p, degrees, want float64 }{
		{0.995, 8, 3.355}, {0.975, 8, 2.306}, {0.95, 8, 1.860}, {0.995, 4, 4.604}, {0.995, 30, 2.750}, {0.75, 10, 0.700},
	} {
		near(t, fmt.Sprintf("t(%v, %v)", test.p, test.degrees), studentQuantile(test.p, test.degrees), test.want, 0.02)
	}
}

func TestBootstrapIsReproducible(t *testing.T) {
	x := []float64{1, 5, 2, 8, 3, 9, 4, 7, 6}
	interval := func(seed uint64) [2]float64 {
		_, low, high := bootstrap(x, 0.9, rand.New(rand.NewPCG(seed, 0)))
		return [2]float64{low, high}
	}
	if a, b := interval(7), interval(7); a != b {
		t.Errorf("one seed gave %v and %v", a, b)
	}
}

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		ratio, low, high, floor float64
		want                    Verdict
	}{
		{1.5, 1.4, 1.6, 0.02, Slower},
		{1.5, 0.9, 1.6, 0.02, Unclear},     // the interval holds 1
		{1.5, 1.4, 1.6, 0.3, Unclear},      // noise alone does 30 %
		{1.08, 1.06, 1.09, 0.01, Same},     // certain, but not worth a word
		{1.08, 1.06, 1.12, 0.01, Unclear},  // may be beyond 10 %
		{1, 0.98, 1.02, 0.02, Same},        //
		{1, 0.8, 1.3, 0.02, Unclear},       //
		{0.5, 0.45, 0.55, 0.02, Faster},    //
		{0.95, 0.94, 0.96, 0.01, Same},     //
		{0.92, 0.88, 0.96, 0.01, Unclear},  //
		{0.86, 0.85, 0.87, 0.04, Faster},   // 1/0.86 is 1.16
		{1.115, 1.11, 1.12, 0.055, Slower}, // just beyond twice the floor
	} {
		c := Comparison{Ratio: test.ratio, Low: test.low, High: test.high, Floor: test.floor}
		c.judge(0.1)
		if c.Verdict != test.want {
			t.Errorf("%+v: got %s, want %s", test, c.Verdict, test.want)
		}
	}
}

func TestComparisonWording(t *testing.T) {
	c := Comparison{Variant: "b", Baseline: "a", Metric: "response_p50", Ratio: 1.524, Low: 1.48, High: 1.561, Floor: 0.0212, Verdict: Slower}
	if got, want := c.String(), "b is 1.52 times a's response_p50 (1.48 to 1.56, noise floor 2.1 %): slower"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

var sink atomic.Uint64

// busy keeps a CPU busy for a time that depends on n alone.
func busy(n int) Op {
	return func(context.Context) error {
		x := uint64(n)
		for range n {
			x = mix(x, 3)
		}
		sink.Store(x)
		return nil
	}
}

// On a real clock and a machine that does other things too: what is equal is found equal, and 50 % more is found.
func TestInterleavedVariantsOnThisMachine(t *testing.T) {
	const n = 6000 // about 25 µs
	for _, test := range []struct {
		load   Load
		metric string
		seeds  uint64
	}{
		{Load{Duration: 500 * time.Millisecond}, "response_p50", 3},
		{Load{Mode: Open, Rate: 5000, Duration: 900 * time.Millisecond}, "service_p50", 3},
	} {
		t.Run(test.metric, func(t *testing.T) {
			missed, found := 0, uint64(0)
			for seed := uint64(1); seed <= test.seeds; seed++ {
				s := Scenario{Name: "busy", Variants: []Variant{Func("a", busy(n)), Func("b", busy(n*3/2))}}
				r := mustRun(t, s, &Options{Load: test.load, Seed: seed, SkipCounters: true})
				same, slower := r.Comparison("a'", test.metric), r.Comparison("b", test.metric)
				rerun := fmt.Sprintf("seed %d", seed)
				if same.Low > 1 || same.High < 1 {
					missed++
					t.Logf("%s: %v", rerun, same)
				}
				if same.Verdict == Slower || same.Verdict == Faster {
					t.Errorf("%s: equal variants told apart: %v", rerun, same)
				}
				switch slower.Verdict {
				case Slower:
					found++
				case Unclear: // the machine was too busy to tell, and the runner says so
					t.Logf("%s: %v", rerun, slower)
					continue
				default:
					t.Errorf("%s: 50 %% more work not found: %v", rerun, slower)
				}
				if slower.Low <= 1 {
					t.Errorf("%s: the interval of 50 %% more work holds 1: %v", rerun, slower)
				}
				if slower.Ratio < 1.25 || slower.Ratio > 1.8 {
					t.Errorf("%s: 50 %% more work measured as %v", rerun, slower)
				}
			}
			if 2*found <= test.seeds {
				t.Errorf("50 %% more work found in %d of %d runs, want most of them", found, test.seeds)
			}
			// A 99 % interval misses now and then.
			if missed > 1 {
				t.Errorf("%d of %d intervals of equal variants do not hold 1", missed, test.seeds)
			}
		})
	}
}
