package harness_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestClusterStarts(t *testing.T) {
	t.Parallel()
	start := time.Now()
	c := startCluster(t, harness.Options{})
	t.Logf("3 masters: %v with %s", time.Since(start).Round(time.Millisecond), c.Provider())

	ctx := within(t, time.Minute)
	if got := len(c.Nodes()); got != 3 {
		t.Fatalf("got %d nodes, want 3", got)
	}
	if want := regexp.MustCompile(`^process: (redis|valkey)-server \d+\.\d+\.\d+ \(/.+\)$`); !want.MatchString(c.Provider()) {
		t.Errorf("Provider() = %q, want it to match %v", c.Provider(), want)
	}
	for slot, want := range map[int]string{0: "node-1", 5460: "node-1", 5461: "node-2", 10921: "node-2", 10922: "node-3", 16383: "node-3"} {
		owner, err := c.Owner(ctx, slot)
		must(t, err)
		if owner.Name() != want {
			t.Errorf("Owner(%d) = %v, want %s", slot, owner, want)
		}
	}
	masters, err := c.Masters(ctx)
	must(t, err)
	if got := names(masters); got != "node-1 node-2 node-3" {
		t.Errorf("Masters() = %s, want node-1 node-2 node-3", got)
	}
	for i, n := range c.Nodes() {
		if got := do(t, n, "CLUSTER", "MYID"); got != n.ID() {
			t.Errorf("%v says its id is %v, want %s", n, got, n.ID())
		}
		if c.Addrs()[i] != n.Addr() || c.Node(n.Name()) != n {
			t.Errorf("%v is not to be found by its own address and name", n)
		}
	}
	if c.Node("node-4") != nil {
		t.Error("Node found a node that is not there")
	}
	if _, err := c.Owner(ctx, harness.Slots); err == nil {
		t.Error("Owner(16384) is no error")
	}
}

func names(nodes []*harness.Node) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Name())
	}
	return strings.Join(all, " ")
}

func TestTwoClustersAtOnce(t *testing.T) {
	t.Parallel()
	type started struct {
		c   *harness.Cluster
		err error
	}
	results := make(chan started)
	for range 2 {
		go func() {
			c, err := harness.StartCluster(context.Background(), harness.Options{Masters: 2, Private: true})
			results <- started{c, err}
		}()
	}
	a, b := <-results, <-results
	for _, r := range []started{a, b} {
		if r.err == nil {
			defer r.c.Close()
		}
	}
	if err := errors.Join(a.err, b.err); err != nil {
		harnesstest.Skip(t, err)
	}
	do(t, a.c.Nodes()[0], "SET", "{06S}", "here") // slot 0
	if got := do(t, b.c.Nodes()[0], "GET", "{06S}"); got != nil {
		t.Errorf("the other cluster has the key too: %v", got)
	}
	must(t, a.c.Close())
	must(t, b.c.WaitReady(within(t, time.Minute)))
}

// Starting and closing many times over is what finds a port that is taken, a process that lingers, a folder that stays.
func TestManyStartsInARow(t *testing.T) {
	for name, tc := range map[string]struct {
		times int
		start func() (*harness.Group, error)
	}{
		"shards": {20, func() (*harness.Group, error) {
			s, err := harness.StartShards(context.Background(), harness.Options{Private: true})
			if err != nil {
				return nil, err
			}
			return s.Group, nil
		}},
		"clusters": {2, func() (*harness.Group, error) {
			c, err := harness.StartCluster(context.Background(), harness.Options{Private: true})
			if err != nil {
				return nil, err
			}
			return c.Group, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			startShards(t, harness.Options{Shards: 1}) // skips where there is no server
			var took, longest time.Duration
			for i := range tc.times {
				start := time.Now()
				g, err := tc.start()
				if err != nil {
					t.Fatalf("start %d of %d: %v", i+1, tc.times, err)
				}
				d := time.Since(start)
				took, longest = took+d, max(longest, d)
				running := pids(t, g.Nodes())
				must(t, g.Close())
				if left := aliveOf(running); len(left) > 0 {
					t.Fatalf("start %d of %d: processes %v outlive Close", i+1, tc.times, left)
				}
			}
			t.Logf("%d starts: %v each, %v at most", tc.times,
				(took / time.Duration(tc.times)).Round(100*time.Microsecond), longest.Round(100*time.Microsecond))
		})
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := startShards(t, harness.Options{})
	running := pids(t, s.Nodes())
	if dirs := workdirs(t); len(dirs) != 1 {
		t.Fatalf("got the folders %v, want one", dirs)
	}
	must(t, s.Nodes()[0].Freeze())
	must(t, s.Nodes()[1].Kill())
	must(t, s.Close())
	must(t, s.Close())
	if left := aliveOf(running); len(left) > 0 {
		t.Errorf("processes %v outlive Close", left)
	}
	if dirs := workdirs(t); len(dirs) != 0 {
		t.Errorf("folders %v outlive Close", dirs)
	}
	if left := waitGoroutines(1); left != "" { // this test itself
		t.Errorf("goroutines outlive Close:\n%s", left)
	}
	if err := s.Nodes()[0].Restart(within(t, time.Minute), harness.Empty); err == nil {
		t.Error("a node was restarted after Close")
	}
	if dirs := workdirs(t); len(dirs) != 0 {
		t.Errorf("the restart after Close left the folders %v", dirs)
	}
}

func workdirs(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), "shardkit-*"))
	must(t, err)
	return dirs
}

func TestPassword(t *testing.T) {
	t.Parallel()
	c := startCluster(t, harness.Options{Masters: 2, Replicas: 1, Password: "correct horse"})
	ctx := within(t, time.Minute)
	do(t, c.Nodes()[0], "SET", "{06S}", "v") // slot 0
	must(t, c.MoveSlots(ctx, c.Nodes()[1], 0))
	if got := do(t, c.Nodes()[1], "GET", "{06S}"); got != "v" {
		t.Errorf("after the move the key is %v, want v", got)
	}
	_, err := harness.StartCluster(ctx, harness.Options{Addrs: c.Addrs(), Password: "wrong"})
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("with a wrong password the error is %v, want WRONGPASS in it", err)
	}
}

func TestArgs(t *testing.T) {
	t.Parallel()
	s := startShards(t, harness.Options{Shards: 1, Args: []string{"--maxmemory", "17mb", "--appendonly", "yes"}})
	for option, want := range map[string]string{"maxmemory": "17825792", "appendonly": "yes"} {
		got := do(t, s.Nodes()[0], "CONFIG", "GET", option).([]any)
		if got[1] != want {
			t.Errorf("%s is %v, want %s: Args come last, so they win", option, got[1], want)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]harness.Options{
		"negative masters":      {Masters: -1},
		"negative replicas":     {Replicas: -1},
		"negative shards":       {Shards: -1},
		"tiny time-out":         {NodeTimeout: time.Millisecond},
		"addresses and private": {Addrs: []string{"127.0.0.1:1"}, Private: true},
		"addresses and flags":   {Addrs: []string{"127.0.0.1:1"}, Args: []string{"--port", "1"}},
		"no addresses":          {Addrs: []string{}},
	} {
		if _, err := harness.StartCluster(context.Background(), o); err == nil || !strings.HasPrefix(err.Error(), "harness: ") {
			t.Errorf("%s: StartCluster: the error is %v, want one of ours", name, err)
		}
		if _, err := harness.StartShards(context.Background(), o); err == nil || !strings.HasPrefix(err.Error(), "harness: ") {
			t.Errorf("%s: StartShards: the error is %v, want one of ours", name, err)
		}
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	startShards(t, harness.Options{Shards: 1}) // skips where there is no server
	t.Setenv("TMPDIR", t.TempDir())
	ctx := within(t, 300*time.Millisecond) // a cluster takes 2 s
	start := time.Now()
	_, err := harness.StartCluster(ctx, harness.Options{Private: true})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "harness: ") {
		t.Errorf("the error is %v, want one of ours that is DeadlineExceeded", err)
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("it took %v to give up", d)
	}
	if dirs := workdirs(t); len(dirs) != 0 {
		t.Errorf("folders %v are left", dirs)
	}
}
