package bench

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestPercentilesOfKnownDistributions(t *testing.T) {
	const n = 100_000
	tests := map[string]func(u float64) float64{
		"uniform 0 to 1 ms":       func(u float64) float64 { return u * 1e6 },
		"exponential, mean 20 µs": func(u float64) float64 { return -20e3 * math.Log(1-u) },
		"pareto from 50 µs":       func(u float64) float64 { return 50e3 * math.Pow(1-u, -0.5) },
		"constant 59.7 s":         func(float64) float64 { return 59.7e9 },
		"nanoseconds":             func(u float64) float64 { return 37 + 3*u },
	}
	for name, quantile := range tests {
		t.Run(name, func(t *testing.T) {
			// Three recorders, as of three workers, then merged.
			parts := []*histogram{newHistogram(time.Hour), newHistogram(time.Hour), newHistogram(time.Hour)}
			var values []int64
			var sum float64
			for i := range n {
				v := int64(quantile((float64(i) + 0.5) / n))
				values = append(values, v)
				sum += float64(v)
				parts[i%3].record(v)
			}
			all := newHistogram(time.Hour)
			for _, p := range parts {
				all.merge(p)
			}
			l := all.latency()
			exact := func(p float64) float64 { return float64(values[int(math.Round(p/100*n))-1]) }
			near(t, "p50", float64(l.P50), exact(50), 0.001)
			near(t, "p90", float64(l.P90), exact(90), 0.001)
			near(t, "p99", float64(l.P99), exact(99), 0.001)
			near(t, "p99.9", float64(l.P999), exact(99.9), 0.001)
			near(t, "mean", l.Mean, sum/n, 1e-9)
			if l.Min != time.Duration(values[0]) || l.Max != time.Duration(values[n-1]) {
				t.Errorf("extremes: got %v to %v, want %v to %v", l.Min, l.Max, values[0], values[n-1])
			}
			if l.Count != n || l.OutOfRange != 0 {
				t.Errorf("counts: got %d and %d out of range, want %d and 0", l.Count, l.OutOfRange, n)
			}
		})
	}
}

func TestOutOfRangeIsCountedNotClamped(t *testing.T) {
	a, b := newHistogram(time.Second), newHistogram(time.Second)
	a.record(int64(time.Second))
	b.record(int64(time.Second) + 1)
	b.record(int64(time.Minute))
	b.record(-5)
	a.merge(b)
	l := a.latency()
	if l.Count != 1 || l.OutOfRange != 3 {
		t.Errorf("got %d in and %d out of range, want 1 and 3", l.Count, l.OutOfRange)
	}
	near(t, "p99.9", float64(l.P999), 1e9, 0.001)
	if l.Max != time.Minute || l.Min != -5 {
		t.Errorf("got min %v, max %v, want -5ns, 1m0s", l.Min, l.Max)
	}
	if empty := newHistogram(time.Second).latency(); empty != (Latency{}) {
		t.Errorf("an empty histogram has latency %+v", empty)
	}
}

// The whole way from an operation to its result, on a clock that does what it is told.
func TestRunRecordsWhatOperationsTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		op := func(context.Context) error {
			time.Sleep(time.Duration(n%1000+1) * time.Microsecond)
			n++
			return nil
		}
		r := mustRun(t, one(op), &Options{Load: Load{Ops: 20_000, SkipWarmUp: true}, SkipCounters: true})
		l := r.Variants[0].Response
		if l.Count != 20_000 || n != 20_000 {
			t.Errorf("got %d recorded of %d done, want 20000", l.Count, n)
		}
		near(t, "p50", float64(l.P50), 500e3, 0.001)
		near(t, "p90", float64(l.P90), 900e3, 0.001)
		near(t, "p99", float64(l.P99), 990e3, 0.001)
		near(t, "p99.9", float64(l.P999), 999e3, 0.001)
		near(t, "mean", l.Mean, 500.5e3, 1e-9)
		if l.Min != time.Microsecond || l.Max != time.Millisecond {
			t.Errorf("got %v to %v, want 1µs to 1ms", l.Min, l.Max)
		}
		near(t, "rate", r.Variants[0].Rate, 1/500.5e-6, 1e-9)

		h, err := l.Histogram()
		if err != nil {
			t.Fatal(err)
		}
		if h.TotalCount() != 20_000 {
			t.Errorf("the encoded histogram holds %d, want 20000", h.TotalCount())
		}
		var counts []int64
		for i, iv := range r.Intervals {
			counts = append(counts, iv.Response.Count)
			if want := r.Measured.Add(time.Duration(i) * time.Second); !iv.Start.Equal(want) {
				t.Errorf("interval %d starts at %v, want %v", i, iv.Start, want)
			}
		}
		// 20,000 operations of 500.5 µs on average are 10.01 s.
		if len(counts) != 11 || slices.Max(counts) > 2100 || !r.Intervals[10].End.Equal(r.Ended) {
			t.Errorf("intervals hold %v and end at %v, want 11 with about 2000 each, to %v", counts, r.Intervals[10].End, r.Ended)
		}
		var sum int64
		for _, c := range counts {
			sum += c
		}
		if sum != 20_000 {
			t.Errorf("intervals hold %d in all, want 20000", sum)
		}
	})
}

// A worker may be held up between looking at the clock and handing in the sample.
func TestSeriesTakesLateSamples(t *testing.T) {
	s := newSeries(time.Minute)
	s.record(0, 1000)
	s.record(0, 1000)
	s.record(3, 5000)
	s.record(0, 4000)
	s.record(1, int64(time.Hour))
	want := []Latency{
		{Count: 3, Mean: 2000, Min: 1000, P50: 1000, P90: 4000, P99: 4000, P999: 4000, Max: 4000},
		{OutOfRange: 1, Min: time.Hour, Max: time.Hour},
		{},
		{Count: 1, Mean: 5000, Min: 5000, P50: 5000, P90: 5000, P99: 5000, P999: 5000, Max: 5000},
		{},
	}
	for i, h := range s.all(5) {
		if got := h.latency(); got != want[i] {
			t.Errorf("interval %d: got %+v, want %+v", i, got, want[i])
		}
	}
}
