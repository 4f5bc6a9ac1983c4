package scenarios

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/bench"
)

// The gate's own quality, by hand: make bench-selftest. SHARDKIT_SELFTEST is the number of runs of each sort.
func TestSelf(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("SHARDKIT_SELFTEST"))
	if err != nil {
		t.Skip("takes ten minutes and a quiet machine: make bench-selftest")
	}
	tg, c := target(t)
	addrs := strings.Join(c.Addrs(), ",")
	const part = "intersect-100"
	p := onePart(t, part)
	gate := func(t *testing.T, worse string, o *Options) *bench.Decision {
		d, _, err := Gate(t.Context(), p, tg, o, build(t, part, addrs, ""), build(t, part, addrs, worse))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// most is how many of 20 runs may go the other way.
	count := func(t *testing.T, want string, most int, run func() (string, bool)) {
		seen, right := map[string]int{}, 0
		for range runs {
			outcome, ok := run()
			seen[outcome]++
			if ok {
				right++
			}
		}
		t.Logf("SELFTEST %s: %d of %d %s; %v", strings.TrimPrefix(t.Name(), "TestSelf/"), right, runs, want, seen)
		if runs-right > most*runs/20 {
			t.Errorf("that is too few: at most %d of 20 may go the other way", most)
		}
	}
	t.Run("same-build", func(t *testing.T) {
		count(t, "no false alarm", 1, func() (string, bool) {
			d := gate(t, "", nil)
			return string(d.Outcome), d.Outcome != bench.Regression
		})
	})
	t.Run("busy-50-percent", func(t *testing.T) {
		count(t, "found", 2, func() (string, bool) {
			d := gate(t, "0.5", nil)
			return string(d.Outcome), d.Outcome == bench.Regression
		})
	})
	t.Run("round-trip", func(t *testing.T) {
		count(t, "found by the counters", 0, func() (string, bool) {
			d := gate(t, "round-trip", &Options{Duration: 500 * time.Millisecond, Rounds: 5})
			by := ""
			for _, f := range d.Findings {
				if f.Verdict == bench.Slower && (f.Metric == bench.RedisCommands || f.Metric == bench.RedisReads) {
					by += " " + f.Metric
				}
			}
			return string(d.Outcome) + by, d.Outcome == bench.Regression && by != ""
		})
	})
	t.Run("one-process-busy-20-percent", func(t *testing.T) {
		count(t, "found", 2, func() (string, bool) {
			var res *bench.Result
			err := serve(t.Context(), p, tg, func(ctx context.Context, s bench.Scenario) (err error) {
				slow := worse(s.Variants[0], "0.2", tg)
				slow.Name = "slow"
				s.Variants = append(s.Variants, slow)
				res, err = bench.Run(ctx, s, &bench.Options{Load: bench.Load{Mode: bench.Open, Rate: 2000, Duration: 6 * time.Second}, SkipCounters: true})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			v := res.Comparison("slow", "service_p50").Verdict
			return string(v), v == bench.Slower
		})
	})
}
