package harness_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

func TestFaultsAreSeen(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	s := startShards(t, harness.Options{Shards: 1})
	n := s.Nodes()[0]
	want := func(want harness.State) {
		t.Helper()
		if got := n.State(ctx); got != want {
			t.Errorf("the state is %v, want %v", got, want)
		}
		if got := n.Alive(ctx); got != (want == harness.Running) {
			t.Errorf("Alive() is %v for a node that is %v", got, want)
		}
	}
	want(harness.Running)

	must(t, n.Freeze())
	want(harness.Frozen)
	if _, err := n.Do(within(t, 100*time.Millisecond), "PING"); err == nil {
		t.Error("a frozen server answers")
	}
	must(t, n.Thaw())
	want(harness.Running)

	must(t, n.Kill())
	want(harness.Dead)
	must(t, n.Kill())
	if err := n.Freeze(); err == nil {
		t.Error("a dead server can be frozen")
	}
	if err := n.Thaw(); err == nil {
		t.Error("a dead server can be thawed")
	}
	must(t, n.Restart(ctx, harness.Empty))
	want(harness.Running)

	must(t, n.Freeze())
	must(t, n.Restart(ctx, harness.Empty))
	want(harness.Running)

	// A server that ends by itself is seen too, and the timeline tells.
	n.Do(ctx, "SHUTDOWN", "NOSAVE")
	want(harness.Dead)
	must(t, s.Close())
	story := s.Timeline().String()
	for _, what := range []string{"ready", "freeze", "thaw", "kill", "restart empty", "had ended by itself", "close"} {
		if !strings.Contains(story, what) {
			t.Errorf("the timeline does not tell %q:\n%s", what, story)
		}
	}
	t.Logf("the timeline:\n%s", story)
}

func TestRestartWithPersistence(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	n := startShards(t, harness.Options{Shards: 1, Persist: true}).Nodes()[0]
	addr := n.Addr()
	do(t, n, "SET", "k", "v")
	must(t, n.Kill())
	must(t, n.Restart(ctx, harness.WithData))
	if got := do(t, n, "GET", "k"); got != "v" {
		t.Errorf("after a restart with data the key is %v, want v", got)
	}
	must(t, n.Restart(ctx, harness.Empty))
	if got := do(t, n, "GET", "k"); got != nil {
		t.Errorf("after an empty restart the key is %v, want none", got)
	}
	if n.Addr() != addr {
		t.Errorf("the address is %s, want %s as before", n.Addr(), addr)
	}
	if err := n.Save(ctx); !errors.Is(err, harness.ErrUnsupported) {
		t.Errorf("Save with persistence: %v, want ErrUnsupported", err)
	}
}

func TestRestartWithOldSnapshot(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	n := startShards(t, harness.Options{Shards: 1}).Nodes()[0]
	if err := n.Restart(ctx, harness.WithData); !errors.Is(err, harness.ErrUnsupported) {
		t.Fatalf("a restart with data that nobody kept: %v, want ErrUnsupported", err)
	}
	do(t, n, "SET", "k", "old")
	must(t, n.Save(ctx))
	do(t, n, "SET", "k", "new")
	must(t, n.Restart(ctx, harness.WithData))
	if got := do(t, n, "GET", "k"); got != "old" {
		t.Errorf("after a restart with an old snapshot the key is %v, want old", got)
	}
	must(t, n.Restart(ctx, harness.Empty))
	if got := do(t, n, "GET", "k"); got != nil {
		t.Errorf("after an empty restart the key is %v, want none", got)
	}
}

func TestKilledMasterIsReplaced(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	c := startCluster(t, harness.Options{Replicas: 1})
	master, replica := c.Nodes()[1], c.Nodes()[4]
	replicas, err := c.Replicas(ctx, master)
	must(t, err)
	if len(replicas) != 1 || replicas[0] != replica {
		t.Fatalf("Replicas(%v) = %v, want %v", master, replicas, replica)
	}
	must(t, master.Kill())
	must(t, c.WaitReady(ctx))
	owner, err := c.Owner(ctx, 8000)
	must(t, err)
	if owner != replica {
		t.Errorf("the owner is %v, want %v", owner, replica)
	}
	must(t, master.Restart(ctx, harness.Empty))
	must(t, c.WaitReady(ctx))
	replicas, err = c.Replicas(ctx, replica)
	must(t, err)
	if len(replicas) != 1 || replicas[0] != master {
		t.Errorf("after its return Replicas(%v) = %v, want %v", replica, replicas, master)
	}
	t.Logf("the timeline:\n%s", c.Timeline())
}

func TestFrozenMasterIsReplaced(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	c := startCluster(t, harness.Options{Replicas: 1})
	must(t, c.Nodes()[0].Freeze())
	must(t, c.WaitReady(ctx))
	owner, err := c.Owner(ctx, 0)
	must(t, err)
	if owner != c.Nodes()[3] {
		t.Errorf("the owner is %v, want %v", owner, c.Nodes()[3])
	}
	must(t, c.Nodes()[0].Thaw())
	must(t, c.WaitReady(ctx))
}

func TestWaitReadySaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	c := startCluster(t, harness.Options{})
	must(t, c.Nodes()[2].Kill())
	err := c.WaitReady(within(t, 200*time.Millisecond))
	if err == nil || !strings.Contains(err.Error(), "10922") {
		t.Errorf("the error is %v, want the slots of the dead node in it", err)
	}
	c.Nodes()[0].Do(within(t, time.Second), "SHUTDOWN", "NOSAVE")
	eventually(t, time.Minute, func() string {
		err = c.WaitReady(within(t, time.Second))
		if err == nil || !strings.Contains(err.Error(), "ended by itself") {
			return "the error is " + err.Error() + ", want the node that ended by itself in it"
		}
		return ""
	})
}

func TestFailover(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	c := startCluster(t, harness.Options{Replicas: 1})
	do(t, c.Nodes()[0], "SET", "{06S}", "v") // slot 0
	must(t, c.Failover(ctx, c.Nodes()[3]))
	if got := do(t, c.Nodes()[3], "GET", "{06S}"); got != "v" {
		t.Errorf("on the new master the key is %v, want v", got)
	}
	must(t, c.WaitReady(ctx))
	replicas, err := c.Replicas(ctx, c.Nodes()[3])
	must(t, err)
	if names(replicas) != "node-1" {
		t.Errorf("the replicas of the new master are %v, want node-1", replicas)
	}
	if err := c.Failover(ctx, c.Nodes()[1]); err == nil {
		t.Error("a master can be promoted")
	}

	// Forced, of another shard, while its master does not answer.
	must(t, c.Nodes()[1].Freeze())
	must(t, c.Failover(ctx, c.Nodes()[4]))
	must(t, c.WaitReady(ctx))
	must(t, c.Nodes()[1].Thaw())
	must(t, c.WaitReady(ctx))
	t.Logf("the timeline:\n%s", c.Timeline())
}
