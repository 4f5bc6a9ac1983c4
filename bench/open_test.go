package bench

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stalling is a server that answers in 200 µs, but to nobody in the third second.
func stalling() Op {
	start := time.Now()
	return func(context.Context) error {
		time.Sleep(200 * time.Microsecond)
		if at := time.Since(start); at >= 2*time.Second && at < 3*time.Second {
			time.Sleep(3*time.Second - at)
		}
		return nil
	}
}

func TestOpenLoopSeesAStallThatClosedLoopHides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := inBubble(&Options{Load: Load{Mode: Open, Rate: 2000, Duration: 5 * time.Second, SkipWarmUp: true}, SkipCounters: true})
		r := mustRun(t, one(stalling()), o)
		l := r.Variants[0].Response
		if g := r.Generator; l.Count != 10_000 || g.Intended != 10_000 || g.Unfinished != 0 {
			t.Errorf("got %d recorded, %d intended, %d unfinished, want 10000, 10000, 0", l.Count, g.Intended, g.Unfinished)
		}
		near(t, "p50", float64(l.P50), 200e3, 0.001)
		// A fifth of the operations was due in the stall and waited 0 to 1 s.
		near(t, "p90", float64(l.P90), 0.5e9, 0.01)
		near(t, "p99", float64(l.P99), 0.95e9, 0.01)
		near(t, "p99.9", float64(l.P999), 0.995e9, 0.01)
		near(t, "service p90, which waits for nobody", float64(r.Variants[0].Service.P90), 200e3, 0.001)
		if g := r.Generator; g.Lateness.Max != 0 || g.MaxBacklog < 1900 || g.MaxBacklog > 2000 {
			t.Errorf("the generator was up to %v late with a backlog of %d, want 0 and about 1936", g.Lateness.Max, g.MaxBacklog)
		}
		if len(r.Marks) != 0 {
			t.Errorf("marks: %v", r.Marks)
		}
		if took := r.Ended.Sub(r.Started); took < 4999*time.Millisecond || took > 5010*time.Millisecond {
			t.Errorf("the run took %v, want 5s", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		o := &Options{Load: Load{Workers: 4, Duration: 5 * time.Second, SkipWarmUp: true}, SkipCounters: true}
		l := mustRun(t, one(stalling()), o).Variants[0].Response
		near(t, "closed-loop p99.9, which the stall escapes", float64(l.P999), 200e3, 0.001)
		near(t, "closed-loop maximum", float64(l.Max), 1e9, 0.001)
	})
}

func TestOpenLoopCountsWhatItCouldNotFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := inBubble(&Options{
			Load:         Load{Mode: Open, Rate: 1000, Workers: 1, Duration: 2 * time.Second, Drain: time.Second, SkipWarmUp: true},
			SkipCounters: true,
		})
		r := mustRun(t, one(sleeper(10*time.Millisecond)), o)
		l, g := r.Variants[0].Response, r.Generator
		if g.Intended != 2000 || l.Count+g.Unfinished != 2000 {
			t.Errorf("got %d intended, %d finished, %d unfinished, want 2000 that add up", g.Intended, l.Count, g.Unfinished)
		}
		near(t, "finished in 3 s of 10 ms each", float64(l.Count), 300, 0.02)
		near(t, "backlog", float64(g.MaxBacklog), 1800, 0.02)
		if !r.Is(Invalid) || !strings.Contains(r.Marks[0].Reason, "not finished 1s after the schedule's end") {
			t.Errorf("marks: got %v, want invalid for what is unfinished", r.Marks)
		}
	})
}

func TestLateGeneratorMakesTheResultInvalid(t *testing.T) {
	for _, test := range []struct {
		name          string
		oversleep, op time.Duration
		invalid       bool
	}{
		{"on time", 0, 100 * time.Microsecond, false},
		{"5 ms late", 5 * time.Millisecond, 100 * time.Microsecond, true},
		{"late by little next to the response time", 5 * time.Millisecond, 100 * time.Millisecond, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &Options{
					Load:         Load{Mode: Open, Rate: 50, Duration: 2 * time.Second, SkipWarmUp: true},
					SkipCounters: true,
					pace:         func(wait time.Duration) { time.Sleep(wait + test.oversleep) },
				}
				r := mustRun(t, one(sleeper(test.op)), o)
				if got := r.Generator.Lateness.P99; got != test.oversleep {
					t.Errorf("lateness p99: got %v, want %v", got, test.oversleep)
				}
				if r.Is(Invalid) != test.invalid {
					t.Fatalf("invalid: got %v, want %v: %v", r.Is(Invalid), test.invalid, r.Marks)
				}
				if test.invalid && !strings.Contains(r.Marks[0].Reason, "the generator itself was late: p99 5ms, where 1ms is allowed") {
					t.Errorf("reason: %q", r.Marks[0].Reason)
				}
				// The lateness is not hidden: it is in the response time.
				want := test.op + test.oversleep
				near(t, "p99", float64(r.Variants[0].Response.P99), float64(want), 0.002)
			})
		})
	}
}

func TestWarmUpIsExcluded(t *testing.T) {
	slowStart := func() (Op, *int) {
		start, calls := time.Now(), 0
		return func(context.Context) error {
			calls++
			if time.Since(start) < 500*time.Millisecond {
				time.Sleep(50 * time.Millisecond)
			} else {
				time.Sleep(time.Millisecond)
			}
			return nil
		}, &calls
	}
	for _, l := range []Load{
		{Duration: time.Second, WarmUp: 600 * time.Millisecond},
		{Mode: Open, Rate: 100, Workers: 10, Ops: 100, WarmUp: 600 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			op, calls := slowStart()
			if l.Mode == Open {
				l.Workers = 1 // calls is not shared
			}
			r := mustRun(t, one(op), inBubble(&Options{Load: l, SkipCounters: true}))
			v := r.Variants[0].Response
			if l.Mode == Open && v.Count != 100 {
				t.Errorf("open: got %d operations, want the 100 after warm-up", v.Count)
			}
			if l.Mode != Open && (v.Count != 1000 || v.Max != time.Millisecond) {
				t.Errorf("closed: got %d operations up to %v, want 1000 up to 1ms", v.Count, v.Max)
			}
			if int64(*calls) <= v.Count {
				t.Errorf("got %d calls for %d recorded, want more", *calls, v.Count)
			}
			if r.Measured.Sub(r.Started) < 600*time.Millisecond {
				t.Errorf("measuring began after %v, want 600ms", r.Measured.Sub(r.Started))
			}
		})
	}
}

func TestOpenLoopRateAndOps(t *testing.T) {
	for _, test := range []struct {
		load Load
		want int64
	}{
		{Load{Rate: 333, Duration: 3 * time.Second}, 999},
		{Load{Rate: 0.5, Duration: 4 * time.Second}, 2},
		{Load{Rate: 1000, Ops: 250}, 250},
		{Load{Rate: 1000, Ops: 5000, Duration: time.Second}, 1000},
		{Load{Rate: 1000, Ops: 500, Duration: time.Second}, 500},
		{Load{Rate: 100_000, Duration: 100 * time.Millisecond}, 10_000},
	} {
		synctest.Test(t, func(t *testing.T) {
			test.load.Mode, test.load.SkipWarmUp = Open, true
			r := mustRun(t, one(sleeper(time.Microsecond)), inBubble(&Options{Load: test.load, SkipCounters: true}))
			if got := r.Variants[0].Response.Count; got != test.want {
				t.Errorf("%+v: got %d operations, want %d", test.load, got, test.want)
			}
			// The last operation starts one period before the end of the schedule.
			period := time.Duration(float64(time.Second) / test.load.Rate)
			want := time.Duration(test.want-1)*period + time.Microsecond
			if got := r.Ended.Sub(r.Measured); got < want || got > want+time.Millisecond {
				t.Errorf("%+v: took %v, want %v", test.load, got, want)
			}
		})
	}
}

func TestPaceOnThisMachine(t *testing.T) {
	s := one(func(context.Context) error { return nil })
	r := mustRun(t, s, &Options{Load: Load{Mode: Open, Rate: 1000, Duration: 500 * time.Millisecond}, SkipCounters: true})
	l := r.Generator.Lateness
	t.Logf("lateness: p50 %v, p99 %v", l.P50, l.P99)
	// 10 µs on an idle machine; a loaded one may take milliseconds, and the results then say so.
	if l.P50 > 10*time.Millisecond {
		t.Errorf("the generator is late by %v at the median", l.P50)
	}
}
