package harness_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestClusterByAddress(t *testing.T) {
	own := startCluster(t, harness.Options{Replicas: 1})
	t.Setenv("SHARDKIT_CLUSTER", " 127.0.0.1:1, "+own.Addrs()[4]) // the first does not answer, the second is a replica
	ctx := within(t, time.Minute)

	c := harnesstest.Cluster(t)
	if want := "address: " + own.Version().String(); !strings.HasPrefix(c.Provider(), want) {
		t.Errorf("Provider() = %q, want it to begin with %q", c.Provider(), want)
	}
	if len(c.Nodes()) != 6 {
		t.Fatalf("the nodes are %v, want all 6", c.Nodes())
	}
	for i, n := range c.Nodes()[:3] {
		if n.ID() != own.Nodes()[i].ID() {
			t.Errorf("node %d is %v, want the masters in the order of their slots", i, n)
		}
	}
	must(t, c.MoveSlots(ctx, c.Nodes()[1], 0))
	must(t, c.WaitReady(ctx))

	n := c.Nodes()[0]
	for what, err := range map[string]error{
		"kill": n.Kill(), "freeze": n.Freeze(), "thaw": n.Thaw(), "save": n.Save(ctx), "restart": n.Restart(ctx, harness.Empty),
	} {
		if !errors.Is(err, harness.ErrUnsupported) {
			t.Errorf("%s: %v, want ErrUnsupported", what, err)
		}
	}
	must(t, c.Close())
	if got := n.State(ctx); got != harness.Running {
		t.Errorf("after Close the server is %v, want running: it is not ours", got)
	}
	must(t, own.Nodes()[0].Freeze())
	if got := n.State(ctx); got != harness.Frozen {
		t.Errorf("a server frozen by its owner is seen as %v, want frozen", got)
	}
	must(t, own.Nodes()[0].Kill())
	if got := n.State(ctx); got != harness.Dead {
		t.Errorf("a server killed by its owner is seen as %v, want dead", got)
	}
}

func TestShardsByAddress(t *testing.T) {
	own := startShards(t, harness.Options{})
	t.Setenv("SHARDKIT_SHARDS", strings.Join(own.Addrs(), ","))
	s := harnesstest.Shards(t)
	if got, want := fmt.Sprint(s.Addrs()), fmt.Sprint(own.Addrs()); got != want {
		t.Errorf("Addrs() = %s, want %s", got, want)
	}
	two := harnesstest.Shards(t, harness.Options{Shards: 2})
	if got, want := fmt.Sprint(two.Addrs()), fmt.Sprint(own.Addrs()[:2]); got != want {
		t.Errorf("of two shards Addrs() = %s, want %s", got, want)
	}

	// Addresses that cannot honour the options are passed over, and the log tells.
	for name, o := range map[string]harness.Options{
		"private":     {Private: true},
		"too few":     {Shards: 4},
		"persistence": {Persist: true},
		"flags":       {Args: []string{"--maxmemory", "64mb"}},
	} {
		var log strings.Builder
		o.Log = func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) }
		s := harnesstest.Shards(t, o)
		if !strings.HasPrefix(s.Provider(), "process: ") {
			t.Errorf("%s: Provider() = %q, want a process", name, s.Provider())
		}
		if told := strings.Contains(log.String(), "passed over"); told == o.Private {
			t.Errorf("%s: the log is %q", name, log.String())
		}
	}
}

func TestBadAddresses(t *testing.T) {
	t.Parallel()
	own := startShards(t, harness.Options{Shards: 1})
	ctx := within(t, time.Minute)
	for name, tc := range map[string]struct {
		start func() error
		want  []string
	}{
		"nobody there": {func() error {
			_, err := harness.StartShards(ctx, harness.Options{Addrs: []string{"127.0.0.1:1"}})
			return err
		}, []string{"127.0.0.1:1", "refused", "Options.Addrs"}},
		"no cluster": {func() error {
			_, err := harness.StartCluster(ctx, harness.Options{Addrs: own.Addrs()})
			return err
		}, []string{own.Addrs()[0], "cluster support disabled", "Options.Addrs"}},
		"too few": {func() error {
			_, err := harness.StartShards(ctx, harness.Options{Addrs: own.Addrs(), Shards: 2})
			return err
		}, []string{"2 shards asked for, 1 named"}},
	} {
		err := tc.start()
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want %q in it", name, err, want)
			}
		}
	}
}

// Of a cluster named by the environment that is too small, another is started in its place.
func TestClusterOfTheEnvironmentTooSmall(t *testing.T) {
	own := startCluster(t, harness.Options{Masters: 1})
	t.Setenv("SHARDKIT_CLUSTER", own.Addrs()[0])
	for _, o := range []harness.Options{{Masters: 2}, {Masters: 1, Replicas: 1}} {
		var log strings.Builder
		o.Log = func(format string, args ...any) { fmt.Fprintf(&log, format+"\n", args...) }
		c, err := harness.StartCluster(context.Background(), o)
		must(t, err)
		if !strings.HasPrefix(c.Provider(), "process: ") || !strings.Contains(log.String(), "asked for") {
			t.Errorf("Provider() = %q and the log %q, want a process and why", c.Provider(), log.String())
		}
		must(t, c.Close())
	}
}
