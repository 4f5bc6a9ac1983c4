package rueidisbackend

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
)

var _ replset.Backend = (*Backend)(nil)

func TestMain(m *testing.M) {
	os.Exit(harnesstest.Main(m, closeShared, func() error { return goleak.Find() }))
}

// closeShared ends the cluster of all tests, if there is one.
func closeShared() error {
	if shared.cluster == nil {
		return nil
	}
	return shared.cluster.Close()
}

// shared is the cluster of all tests that leave it as it was. It takes 2 s to
// start. It does not notice that a node is frozen, so one that is stays the
// owner of its slots until it is thawed.
var shared struct {
	once    sync.Once
	cluster *harness.Cluster
	err     error
}

func sharedCluster(t *testing.T) *harness.Cluster {
	t.Helper()
	shared.once.Do(func() {
		// Private, because tests move slots.
		o := harness.Options{Private: true, NodeTimeout: time.Minute}
		if shared.cluster, shared.err = harness.StartCluster(context.Background(), o); shared.err == nil {
			listed(t, shared.cluster)
		}
	})
	if shared.err != nil {
		harnesstest.Skip(t, shared.err)
	}
	return shared.cluster
}

// connect returns a backend over a new client, with default options but for
// what change does to them.
func connect(t *testing.T, c *harness.Cluster, change ...func(*rueidis.ClientOption)) *Backend {
	t.Helper()
	o := rueidis.ClientOption{InitAddress: c.Addrs()}
	for _, f := range change {
		f(&o)
	}
	client, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	b, err := New(client)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// warm makes the backend read the slot map.
func warm(t *testing.T, b *Backend) {
	t.Helper()
	if _, err := b.Do(t.Context(), "x", []string{"PING"}); err != nil {
		t.Fatal(err)
	}
}

// keyIn returns a key in the slot; other suffixes give other keys.
func keyIn(b *Backend, slot uint16, suffix string) string {
	for n := 0; ; n++ {
		if tag := "{" + strconv.Itoa(n) + "}"; b.slotOf(tag) == slot {
			return tag + suffix
		}
	}
}

// masters returns the owner of a slot and another master.
func masters(t *testing.T, c *harness.Cluster, slot uint16) (owner, other *harness.Node) {
	t.Helper()
	owner, err := c.Owner(t.Context(), int(slot))
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Masters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range all {
		if n != owner {
			return owner, n
		}
	}
	t.Fatal("the cluster has one master")
	return nil, nil
}

// freeze stops a node until thaw is called, or the test ends.
func freeze(t *testing.T, n *harness.Node) (thaw func()) {
	t.Helper()
	if err := n.Freeze(); err != nil {
		t.Fatal(err)
	}
	thaw = func() {
		if err := n.Thaw(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(thaw)
	return thaw
}

// tell runs a command on a node past the backend.
func tell(t *testing.T, n *harness.Node, cmd ...string) any {
	t.Helper()
	v, err := n.Do(t.Context(), cmd...)
	if err != nil {
		t.Fatalf("%s: %q: %v", n, cmd, err)
	}
	return v
}

// eventually waits for a state of the servers.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(time.Minute)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("not after a minute: %s", what)
		}
		<-tick.C
	}
}

// ways are the methods, for one command.
var ways = []struct {
	name string
	run  func(ctx context.Context, b *Backend, key string, cmd ...string) (any, error)
}{
	{"Do", func(ctx context.Context, b *Backend, key string, cmd ...string) (any, error) {
		return b.Do(ctx, key, cmd)
	}},
	{"Pipeline", func(ctx context.Context, b *Backend, key string, cmd ...string) (any, error) {
		return one(b.Pipeline(ctx, []string{key}, [][]string{cmd}), nil)
	}},
	{"Tx", func(ctx context.Context, b *Backend, key string, cmd ...string) (any, error) {
		return one(b.Tx(ctx, key, [][]string{cmd}))
	}},
}

func one(list []any, err error) (any, error) {
	switch {
	case err != nil:
		return nil, err
	case len(list) != 1:
		return nil, fmt.Errorf("%d elements for one command", len(list))
	}
	if err, failed := list[0].(error); failed {
		return nil, err
	}
	return list[0], nil
}

// privateCluster starts a cluster for tests that break it.
func privateCluster(t *testing.T, o harness.Options) *harness.Cluster {
	t.Helper()
	o.Private = true
	c := harnesstest.Cluster(t, o)
	listed(t, c)
	return c
}

// listed restarts nodes that leave themselves out of CLUSTER SHARDS, as Redis
// 8.0 and Valkey 8.1 do after they were set up by the nodes.conf of Redis 7.0
// (redis/redis#14495). Commands reach such a node in a roundabout way, see
// hidden, which these tests of faults are not about.
func listed(t *testing.T, c *harness.Cluster) {
	t.Helper()
	restarted := false
	for _, n := range c.Nodes() {
		if v, err := n.Do(t.Context(), "CLUSTER", "SHARDS"); err != nil || strings.Contains(fmt.Sprint(v), n.ID()) {
			continue
		}
		if err := n.Restart(t.Context(), harness.Empty); err != nil {
			t.Fatal(err)
		}
		restarted = true
	}
	if restarted {
		if err := c.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
