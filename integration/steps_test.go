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
// time of the servers by call. How long the calls took is printed as the servers'
// SLOWLOG has it: on a busy machine that counts waiting for a CPU too.
func TestStepsAreShort(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	b := open(t, clients[0].name, c)
	var usual time.Duration
	for _, tc := range []struct {
		name    string
		members int
		slots   []uint16
		add     bool
		step    time.Duration
	}{
		{"publish 200 strings", 200, some(2048), false, 0},
		{"the same, StepTime 200us", 200, some(2048), false, 200 * time.Microsecond},
		{"add 6, remove 4", 200, some(2048), true, 0},
		{"publish 2,000 strings", 2000, some(128), false, 0},
		{"publish 10,000 strings", 10_000, some(16), false, 0}, // a replica is one step: printed, not judged
	} {
		s, err := replset.New(b, "steps", &replset.Options{Slots: tc.slots, MaxBytes: -1, StepTime: tc.step})
		if err != nil {
			t.Fatal(err)
		}
		members := make([]string, tc.members)
		for i := range members {
			members[i] = fmt.Sprintf("member:%06d", i)
		}
		publish(t, s, members...)
		tell(t, c.Nodes(), "CONFIG", "RESETSTAT")
		tell(t, c.Nodes(), "CONFIG", "SET", "slowlog-log-slower-than", "2000", "slowlog-max-len", "100000")
		tell(t, c.Nodes(), "SLOWLOG", "RESET")
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
		calls, mean, long, longest := evals(t, c)
		cpu := (cpuTime(t, c) - before) / time.Duration(calls)
		t.Logf("%-24s %5d calls, mean CPU %8s, mean time %8s, %5.1f %% under 2 ms, the longest of the others %s",
			tc.name, calls, cpu, mean, 100-100*float64(long)/float64(calls), longest)
		if tc.step > 0 && cpu > usual*2/3 {
			t.Errorf("%s: a call takes %s of CPU time on average, and %s at the usual StepTime, want a third", tc.name, cpu, usual)
		}
		usual = cpu
		// About 0.8 ms alone; beside other tests the caches are cold.
		if cpu > 2*time.Millisecond && tc.members < 10_000 {
			t.Errorf("%s: a call takes %s of CPU time on average, want about 1 ms", tc.name, cpu)
		}
	}
}

// evals sums up the script calls of all nodes: how many, their mean, how many
// took 2 ms or more, and the longest of those.
func evals(t *testing.T, c *harness.Cluster) (calls int64, mean time.Duration, long int, longest time.Duration) {
	t.Helper()
	var usec float64
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
		if v, err = n.Do(t.Context(), "SLOWLOG", "GET", "-1"); err != nil {
			t.Fatal(err)
		}
		for _, entry := range v.([]any) { // {id, time, usec, {command, ...}, ...}
			took, command := entry.([]any)[2].(int64), entry.([]any)[3].([]any)[0]
			if command == "EVALSHA" || command == "evalsha" {
				long++
				longest = max(longest, time.Duration(took)*time.Microsecond)
			}
		}
	}
	if calls == 0 {
		t.Fatal("the servers ran no script")
	}
	return calls, time.Duration(usec/float64(calls)) * time.Microsecond, long, longest
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
