package goredis_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/slotmap"
)

// quick has time-outs that a frozen node meets well within the node time-out,
// every retry that the client offers.
func quick(o *redis.ClusterOptions) {
	o.ReadTimeout, o.WriteTimeout, o.DialTimeout = 100*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	o.MaxRetries, o.MaxRedirects = 3, 3
	o.MinRetryBackoff, o.MaxRetryBackoff = time.Millisecond, 2*time.Millisecond
}

// frozen runs f while the node is frozen, for less than the node time-out: no
// failover is meant. ready is called before, when all is well.
func frozen(t *testing.T, c *harness.Cluster, n *harness.Node, ready func() bool, f func()) {
	t.Helper()
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client is ready", ready)
	if err := n.Freeze(); err != nil {
		t.Fatal(err)
	}
	f()
	if err := n.Thaw(); err != nil {
		t.Fatal(err)
	}
}

// A command that timed out is not sent again, whatever the client's options: the
// server does it once when it comes back to life. The client itself sends it
// again, which shows that the test can fail.
func TestNothingIsSentTwice(t *testing.T) {
	c := sharedCluster(t)
	const slot = 5000
	owner, _ := owners(t, c, slot)
	read := func(key string) any {
		t.Helper()
		v, err := connect(t, c).Do(t.Context(), key, []string{"GET", key})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	count := func(name string, incr func(client *redis.ClusterClient, key string)) any {
		t.Helper()
		client, key := newClient(t, c, quick), keyIn(t, slot, name)
		frozen(t, c, owner, func() bool {
			return client.Set(t.Context(), key, 0, 0).Err() == nil && opened(t, client, key)
		}, func() { incr(client, key) })
		if err := c.WaitReady(t.Context()); err != nil {
			t.Fatal(err)
		}
		return read(key)
	}
	for _, w := range ways {
		v := count(w.name, func(client *redis.ClusterClient, key string) {
			_, err := w.run(t.Context(), goredis.New(client), key, "INCR", key)
			var timeout interface{ Timeout() bool }
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("%s: INCR on a frozen node: %v, want a time-out", w.name, err)
			}
		})
		if v != "1" {
			t.Errorf("%s: INCR was done %v times, want once", w.name, v)
		}
	}
	v := count("client", func(client *redis.ClusterClient, key string) { client.Incr(t.Context(), key) })
	if v == "0" || v == "1" {
		t.Errorf("the client itself did INCR %v times, want more: this test cannot show a second sending", v)
	}
}

// opened has the client open a few connections to key's master, by commands that
// keep one each for a while: a retry on a new one would not get past HELLO.
func opened(t *testing.T, client *redis.ClusterClient, key string) bool {
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() { client.Do(t.Context(), "BLPOP", fmt.Sprint(key, ":none", i), "0.05") })
	}
	wg.Wait()
	node, err := client.MasterForKey(t.Context(), key)
	return err == nil && node.PoolStats().IdleConns >= 4
}

// In a pipeline over all nodes one that does not answer costs its own commands
// only.
func TestPipelineWithAFrozenNode(t *testing.T) {
	c := sharedCluster(t)
	b := connect(t, c, quick)
	warm(t, b)
	const slot = 5002
	silent, _ := owners(t, c, slot)
	var keys []string
	var cmds [][]string
	var on []string
	for slot := 2; slot < slotmap.Slots; slot += 1000 {
		key := keyIn(t, slot, "p")
		owner, _ := owners(t, c, slot)
		keys, cmds, on = append(keys, key), append(cmds, []string{"SET", key, "v"}), append(on, owner.Name())
	}
	var got []any
	frozen(t, c, silent, func() bool {
		for _, v := range b.Pipeline(t.Context(), keys, cmds) {
			if v != "OK" {
				return false
			}
		}
		return true
	}, func() { got = b.Pipeline(t.Context(), keys, cmds) })
	for i, v := range got {
		if err, failed := v.(error); failed != (on[i] == silent.Name()) || !failed && v != "OK" {
			t.Errorf("element %d, of %s: got %v, %v; %s is frozen", i, on[i], v, err, silent.Name())
		}
	}
}
