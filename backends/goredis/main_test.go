package goredis_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

var (
	_ replset.Backend       = (*goredis.Backend)(nil)
	_ replset.ReplicaReader = (*goredis.Backend)(nil)
)

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

// shared is the one cluster of this binary: three masters with a replica each.
// Tests leave it with as many, in whatever roles.
var shared struct {
	once    sync.Once
	cluster *harness.Cluster
	err     error
}

func sharedCluster(t *testing.T) *harness.Cluster {
	t.Helper()
	shared.once.Do(func() {
		shared.cluster, shared.err = harness.StartCluster(context.Background(), harness.Options{
			Replicas: 1,
			Private:  true, // tests move slots, and freeze and kill nodes
			Args:     []string{"--cluster-allow-replica-migration", "no"},
		})
	})
	if shared.err != nil {
		harnesstest.Skip(t, shared.err)
	}
	c := shared.cluster
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("servers: %s\n%s", c.Provider(), c.Timeline())
		}
	})
	return c
}

// connect returns a backend over a new client with default options, but for
// what change does to them.
func connect(t *testing.T, c *harness.Cluster, change ...func(*redis.ClusterOptions)) *goredis.Backend {
	t.Helper()
	return goredis.New(newClient(t, c, change...))
}

func newClient(t *testing.T, c *harness.Cluster, change ...func(*redis.ClusterOptions)) *redis.ClusterClient {
	t.Helper()
	o := &redis.ClusterOptions{Addrs: c.Addrs()}
	for _, f := range change {
		f(o)
	}
	client := redis.NewClusterClient(o)
	t.Cleanup(func() { client.Close() })
	return client
}

// warm makes the client read the slot map.
func warm(t *testing.T, b *goredis.Backend) {
	t.Helper()
	if _, err := b.Do(t.Context(), "x", []string{"PING"}); err != nil {
		t.Fatal(err)
	}
}

// keyIn is a key of this test in the slot.
func keyIn(t *testing.T, slot int, name string) string {
	return slotmap.KeyForSlot(t.Name()+":"+name, uint16(slot))
}

// owners returns the slot's master, and another.
func owners(t *testing.T, c *harness.Cluster, slot int) (owner, other *harness.Node) {
	t.Helper()
	owner, err := c.Owner(t.Context(), slot)
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

// tell runs a command on a node beside the backend.
func tell(t *testing.T, n *harness.Node, cmd ...string) any {
	t.Helper()
	v, err := n.Do(context.Background(), cmd...)
	if err != nil {
		t.Fatalf("%s: %q: %v", n, cmd, err)
	}
	return v
}

// eventually polls for a state of the servers.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// ways are the methods, for one command.
var ways = []struct {
	name string
	run  func(ctx context.Context, b *goredis.Backend, key string, cmd ...string) (any, error)
}{
	{"Do", func(ctx context.Context, b *goredis.Backend, key string, cmd ...string) (any, error) {
		return b.Do(ctx, key, cmd)
	}},
	{"Pipeline", func(ctx context.Context, b *goredis.Backend, key string, cmd ...string) (any, error) {
		return one(b.Pipeline(ctx, []string{key}, [][]string{cmd}), nil)
	}},
	{"Tx", func(ctx context.Context, b *goredis.Backend, key string, cmd ...string) (any, error) {
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
