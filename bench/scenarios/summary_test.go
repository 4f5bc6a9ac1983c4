package scenarios

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/bench"
)

func TestSummary(t *testing.T) {
	latency := func(p50, p99 time.Duration) bench.Latency { return bench.Latency{Count: 9, P50: p50, P99: p99} }
	results := []*bench.Result{
		{
			Scenario: "publish-200-strings", Doc: "what is done",
			Variants: []bench.VariantResult{
				{Name: "shardkit", Response: latency(112_345*time.Microsecond, 1234*time.Millisecond), Counters: map[string]float64{
					bench.RedisCommands: 49152, bench.RedisBytesIn: 1_234_567.5, bench.RedisBytesOut: 88, bench.AllocsPerOp: 12.25, bench.BytesPerOp: 7}},
				{Name: "go-pipelines", Response: latency(160*time.Millisecond, 2*time.Second), Errors: 3,
					Failures: []bench.Failures{{Kind: "timeout", Count: 3, Texts: []string{"first\nline", "second"}}}},
				{Name: "late", Response: latency(900*time.Nanosecond, 12*time.Microsecond)},
				{Name: "shardkit'", Twin: true, Response: latency(1, 1)},
			},
			Comparisons: []bench.Comparison{
				{Variant: "shardkit'", Baseline: "shardkit", Metric: "response_p50", Ratio: 1, Low: 0.9, High: 1.1, Floor: 0.113, Twin: true},
				{Variant: "go-pipelines", Baseline: "shardkit", Metric: "response_p50", Ratio: 1.4249, Low: 1.3, High: 123.4, Verdict: bench.Slower},
				{Variant: "go-pipelines", Baseline: "shardkit", Metric: "response_mean", Ratio: 99, Low: 99, High: 99, Verdict: bench.Slower},
			},
			Marks: []bench.Mark{{Kind: bench.Invalid, Reason: "operations\nfailed"}},
		},
		{
			Scenario: "coverage", Doc: "computed",
			Variants: []bench.VariantResult{
				{Name: "one-key", Counters: map[string]float64{SameSlot: 1.0 / 16384, Lost: 1, LostByAdd: 0.5}},
				{Name: "one-per-slot", Counters: map[string]float64{SameSlot: 1, Lost: 0, LostByAdd: 0}},
			},
		},
		{Scenario: "delta", Doc: "not reached", Marks: []bench.Mark{{Kind: bench.Partial, Reason: "interrupted"}}},
	}
	var b strings.Builder
	if err := WriteSummary(&b, results); err != nil {
		t.Fatal(err)
	}
	want := `publish-200-strings: what is done
                   p50     p99  ratio  from   to              commands  bytes sent  bytes back  allocs
  shardkit      112 ms  1.23 s      1             noise 11 %    49,152   1,234,568          88    12.2
  go-pipelines  160 ms     2 s   1.42  1.30  123  slower             -           -           -       -
  late          0.9 us   12 us      -                                -           -           -       -
  go-pipelines: 3 x timeout: first line | second
  INVALID: operations failed

coverage: computed
                same slot   lost  by add
  one-key        0.0061 %  100 %    50 %
  one-per-slot      100 %    0 %     0 %

delta: not reached
  PARTIAL: interrupted
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	if err := WriteSummary(fullDisk{}, results); err == nil {
		t.Error("an error of the writer is not reported")
	}
}

// With a rate, service times are compared: response times hold the queue in which all variants stood.
func TestSummaryOfAnOpenLoop(t *testing.T) {
	r := &bench.Result{
		Scenario: "intersect-100", Settings: bench.Settings{Load: bench.Load{Mode: bench.Open}},
		Variants: []bench.VariantResult{
			{Name: "bare", Response: bench.Latency{Count: 1}}, {Name: "shardkit", Response: bench.Latency{Count: 1}},
		},
		Comparisons: []bench.Comparison{
			{Variant: "shardkit", Metric: "response_p50", Ratio: 7},
			{Variant: "shardkit", Metric: "service_p50", Ratio: 3},
		},
	}
	var b strings.Builder
	if err := WriteSummary(&b, []*bench.Result{r}); err != nil || !strings.Contains(b.String(), "3.00") || strings.Contains(b.String(), "7.00") {
		t.Errorf("got %v and\n%s, want the ratio of service times, 3.00", err, b.String())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
