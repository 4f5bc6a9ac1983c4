package harness_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

// Every node lists every node, itself included, in CLUSTER SHARDS, and a replica together with its master.
func TestClusterShardsListsEveryNode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, harness.Options{Masters: 3, Replicas: 1})
	if v := c.Version(); v.Name == "redis" && !v.AtLeast(7, 0) {
		t.Skipf("%v has no CLUSTER SHARDS", v)
	}
	nodes := c.Nodes()
	var want []string
	for i := range 3 {
		ids := []string{nodes[i].ID(), nodes[i+3].ID()}
		slices.Sort(ids)
		want = append(want, strings.Join(ids, " "))
	}
	slices.Sort(want)
	for _, n := range nodes {
		eventually(t, time.Minute, func() string { // a node learns over the bus who is in whose shard
			got := shardsOf(t, n)
			if slices.Equal(got, want) {
				return ""
			}
			return n.String() + " lists the shards\n" + strings.Join(got, "\n") + "\nwant\n" + strings.Join(want, "\n")
		})
	}
}

// shardsOf returns the ids of the nodes in each shard, as the node lists them.
func shardsOf(t *testing.T, n *harness.Node) (shards []string) {
	t.Helper()
	for _, shard := range do(t, n, "CLUSTER", "SHARDS").([]any) {
		fields := shard.([]any) // "slots", [...], "nodes", [...]
		var ids []string
		for _, node := range fields[3].([]any) {
			ids = append(ids, node.([]any)[1].(string))
		}
		slices.Sort(ids)
		shards = append(shards, strings.Join(ids, " "))
	}
	slices.Sort(shards)
	return shards
}
