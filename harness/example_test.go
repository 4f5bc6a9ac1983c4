package harness_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// A master is killed, and its replica takes over.
func ExampleStartCluster() {
	ctx := context.Background()
	c, err := harness.StartCluster(ctx, harness.Options{Replicas: 1, Private: true})
	if err != nil {
		log.Fatal(err) // says what was looked for, and what installs it
	}
	defer c.Close()
	fmt.Println(c.Provider(), c.Addrs())

	owner, err := c.Owner(ctx, 42)
	if err != nil {
		log.Fatal(err)
	}
	if err := owner.Kill(); err != nil {
		log.Fatal(err)
	}
	if err := c.WaitReady(ctx); err != nil { // about 2 s later
		log.Fatal(err)
	}
	fmt.Print(c.Timeline())
}

// A shard loses its network for a while, and comes back with the data it had.
func ExampleStartShards() {
	ctx := context.Background()
	s, err := harness.StartShards(ctx, harness.Options{Shards: 5, Persist: true, Proxied: true, Log: log.Printf})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	n := s.Nodes()[0]
	if _, err := n.Do(ctx, "SET", "k", "v"); err != nil {
		log.Fatal(err)
	}
	n.Stall() // clients see silence; n.Do has a way of its own
	n.Restart(ctx, harness.WithData)
	n.Mend()
	v, err := n.Do(ctx, "GET", "k")
	fmt.Println(v, err)
}

// A slot is held half-way between two masters, where clients are told ASK.
func ExampleCluster_BeginMove() {
	ctx := context.Background()
	c, err := harness.StartCluster(ctx, harness.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	m, err := c.BeginMove(ctx, c.Nodes()[2], 42)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Abort(ctx) // nothing, once the move is finished
	if _, err := m.MigrateKeys(ctx, 1); err != nil {
		log.Fatal(err)
	}
	// ... look at slot 42 with the client under test ...
	if err := m.Finish(ctx); err != nil {
		log.Fatal(err)
	}
}

// In a test, harnesstest skips, fails and cleans up.
func Example_test() {
	_ = func(t *testing.T) {
		c := harnesstest.Cluster(t, harness.Options{Replicas: 1, Private: true})
		if err := c.Failover(t.Context(), c.Nodes()[3]); err != nil {
			t.Fatal(err)
		}
	}
}
