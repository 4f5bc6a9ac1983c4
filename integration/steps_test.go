package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
)

// A write works in steps of about a millisecond of server time, so that the
// node's other clients wait for one of them at most. What is judged is the CPU
// time of the servers by call. How long the calls took is printed from the
// servers' own histogram: on a busy machine that counts waiting for a CPU too.
func TestStepsAreShort(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	b := open(t, clients[0].name, c)
	for _, tc := range []struct {
		name    string
		members int
		slots   []uint16
		add     bool
	}{
		{"publish 200 strings", 200, nil, false},
		{"add 6, remove 4", 200, nil, true},
		{"publish 2,000 strings", 2000, some(512), false},
		{"publish 10,000 strings", 10_000, some(64), false}, // a replica is one step: printed, not judged
	} {
		s, err := replset.New(b, "steps", &replset.Options{Slots: tc.slots, MaxBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		members := make([]string, tc.members)
		for i := range members {
			members[i] = fmt.Sprintf("member:%06d", i)
		}
		publish(t, s, members...)
		tell(t, c.Nodes(), "CONFIG", "RESETSTAT")
		before := cpuTime(t, c)
		for i := range 3 {
			if tc.add {
				err = s.Apply(t.Context(), replset.Delta{Add: []string{"a", "b", "c", "d", "e", fmt.Sprint(i)}, Remove: members[4*i : 4*i+4]})
			} else {
				err = s.Publish(t.Context(), members)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		calls, mean, within2 := evals(t, c)
		cpu := (cpuTime(t, c) - before) / time.Duration(calls)
		t.Logf("%-24s %5d calls, mean CPU %8s, mean time %8s, %5.1f %% under 2 ms", tc.name, calls, cpu, mean, 100*within2)
		if cpu > 1500*time.Microsecond && tc.members < 10_000 {
			t.Errorf("%s: a call takes %s of CPU time on average, want about 1 ms", tc.name, cpu)
		}
	}
}

// evals sums up the script calls of all nodes: how many, their mean, and the
// share of those shorter than 2 ms (2.097 ms, the histogram's next bound).
func evals(t *testing.T, c *harness.Cluster) (calls int64, mean time.Duration, within2 float64) {
	t.Helper()
	var usec, short float64
	for _, n := range c.Nodes() {
		v, err := n.Do(t.Context(), "INFO", "commandstats")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(v.(string)) {
			name, stats, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name != "cmdstat_evalsha" {
				continue
			}
			for _, f := range strings.Split(stats, ",") {
				key, value, _ := strings.Cut(f, "=")
				x, _ := strconv.ParseFloat(value, 64)
				switch key {
				case "calls":
					calls += int64(x)
				case "usec":
					usec += x
				}
			}
		}
		if v, err = n.Do(t.Context(), "LATENCY", "HISTOGRAM", "evalsha"); err != nil {
			t.Fatal(err)
		}
		// {"evalsha", {"calls", n, "histogram_usec", {bound, calls up to it, ...}}}
		reply := v.([]any)[1].([]any)[3].([]any)
		upTo := int64(0)
		for i := 0; i < len(reply); i += 2 {
			if reply[i].(int64) <= 2100 {
				upTo = reply[i+1].(int64)
			}
		}
		short += float64(upTo)
	}
	if calls == 0 {
		t.Fatal("the servers ran no script")
	}
	return calls, time.Duration(usec/float64(calls)) * time.Microsecond, short / float64(calls)
}

// cpuTime is what all servers have used.
func cpuTime(t *testing.T, c *harness.Cluster) time.Duration {
	t.Helper()
	var sum float64
	for _, n := range c.Nodes() {
		v, err := n.Do(t.Context(), "INFO", "cpu")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(v.(string)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name == "used_cpu_sys" || name == "used_cpu_user" {
				x, _ := strconv.ParseFloat(value, 64)
				sum += x
			}
		}
	}
	return time.Duration(sum * float64(time.Second))
}
