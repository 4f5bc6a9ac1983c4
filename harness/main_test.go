package harness_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// TestMain gives the tests a temporary folder of their own, and fails the run if a goroutine or folder of the harness is left in
// the end. As a helper it is the program that other tests kill.
func TestMain(m *testing.M) {
	if role := os.Getenv("SHARDKIT_HARNESS_HELPER"); role != "" {
		helper(role)
		return
	}
	tmp, err := os.MkdirTemp("", "shardkit-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("TMPDIR", tmp)
	flag.Parse()
	flag.Set("test.parallel", "4") // the start of a cluster is two seconds of waiting
	code := m.Run()
	if left, _ := filepath.Glob(filepath.Join(tmp, "shardkit-*")); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "folders left behind:", left)
		code = 1
	}
	os.RemoveAll(tmp)
	if left := waitGoroutines(0); left != "" {
		fmt.Fprintln(os.Stderr, "goroutines left behind:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// waitGoroutines waits until at most n goroutines run code of the harness, and returns the stacks of all that do if more are left.
func waitGoroutines(n int) string {
	var ours []string
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		buf := make([]byte, 4<<20)
		ours = ours[:0]
		for _, g := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "shardkit/harness.") {
				ours = append(ours, g)
			}
		}
		if len(ours) <= n {
			return ""
		}
	}
	return strings.Join(ours, "\n\n")
}

func startCluster(t *testing.T, o harness.Options) *harness.Cluster {
	t.Helper()
	o.Private = true
	return harnesstest.Cluster(t, o)
}

func startShards(t *testing.T, o harness.Options) *harness.Shards {
	t.Helper()
	o.Private = true
	return harnesstest.Shards(t, o)
}

// within returns a context that ends the test's waits before the test binary's own time-out does.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func do(t *testing.T, n *harness.Node, args ...string) any {
	t.Helper()
	reply, err := n.Do(within(t, time.Minute), args...)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until done returns "", which otherwise says what is still wrong.
func eventually(t *testing.T, d time.Duration, done func() string) {
	t.Helper()
	deadline := time.Now().Add(d)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		wrong := done()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", d, wrong)
		}
		<-tick.C
	}
}

func pid(t *testing.T, n *harness.Node) int {
	t.Helper()
	info, _ := do(t, n, "INFO", "server").(string)
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "process_id:"); ok {
			id, err := strconv.Atoi(strings.TrimSpace(v))
			must(t, err)
			return id
		}
	}
	t.Fatalf("INFO server of %v has no process_id", n)
	return 0
}

func pids(t *testing.T, nodes []*harness.Node) []int {
	t.Helper()
	var all []int
	for _, n := range nodes {
		all = append(all, pid(t, n))
	}
	return all
}

// alive reports whether a process is there and is not a zombie, which waits for nobody but its parent.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func aliveOf(pids []int) (left []int) {
	for _, p := range pids {
		if alive(p) {
			left = append(left, p)
		}
	}
	return left
}
