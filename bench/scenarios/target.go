package scenarios

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
	"github.com/shardkit/shardkit/tiercache"
)

// Target is the servers to measure on.
type Target struct {
	// Client is the caller's, who closes it. Reads and the classic writes go over it as they would in an application.
	Client *redis.ClusterClient

	// Shards are the caller's clients of independent servers, for scenarios with Shards.
	Shards []*redis.Client

	// Nodes are the servers behind Shards, in their order, where they are the caller's own: the scenario failover kills and
	// freezes one of them again and again.
	Nodes []*harness.Node

	// Others are adapters of other clients, to be measured beside.
	Others []Adapter

	// Worker starts a program that calls Serve for a part on the same servers: reader-p99 reads in it.
	Worker func(Part) *exec.Cmd

	// Prefix begins every key. Empty draws one that begins with "skbench".
	Prefix string

	// Peers are other programs to measure in the scenarios that write.
	Peers []Peer

	some []uint16 // slots to write, for tests; nil means all
}

// Adapter is what shardkit has of one more client of the same servers. Its variants are shardkit and bare, with its name
// after a dash: bare is one command by way of the adapter, which adds little to what the client itself takes.
type Adapter struct {
	Name    string            // as in "rueidis"
	Backend replset.Backend   // of the cluster; nil: not measured there
	Shards  []tiercache.Shard // in the order of Target.Shards; none: not measured there
}

// of is a variant's name with that of the client.
func (a Adapter) of(variant string) string { return variant + "-" + a.Name }

// slots are those in which a set of that name has replicas.
func (t *Target) slots(name string) []uint16 {
	if t.some != nil {
		// A Set keeps one in its home slot in any case.
		slots := append([]uint16{slotmap.Slot(name)}, t.some...)
		slices.Sort(slots)
		return slices.Compact(slots)
	}
	all := make([]uint16, slotmap.Slots)
	for i := range all {
		all[i] = uint16(i)
	}
	return all
}

func (t *Target) prefix() string {
	if t.Prefix != "" {
		return t.Prefix
	}
	return "skbench" + strings.ToLower(rand.Text()[:4])
}

// masters returns a client of each master, in the order of their addresses.
func masters(ctx context.Context, client *redis.ClusterClient) ([]*redis.Client, error) {
	var mu sync.Mutex
	var nodes []*redis.Client
	err := client.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		nodes = append(nodes, node)
		return nil
	})
	if err == nil && len(nodes) == 0 {
		err = errors.New("bench: the cluster has no master")
	}
	slices.SortFunc(nodes, func(a, b *redis.Client) int { return strings.Compare(a.Options().Addr, b.Options().Addr) })
	return nodes, err
}

// counters asks the masters what they have done, with the client's own credentials.
func counters(ctx context.Context, client *redis.ClusterClient) (*bench.RedisInfo, error) {
	nodes, err := masters(ctx, client)
	if err != nil {
		return nil, err
	}
	return infoOf(nodes), nil
}

func infoOf(nodes []*redis.Client) *bench.RedisInfo {
	o := nodes[0].Options()
	info := &bench.RedisInfo{Username: o.Username, Password: o.Password, TLS: o.TLSConfig}
	for _, n := range nodes {
		info.Addrs = append(info.Addrs, n.Options().Addr)
	}
	return info
}

// removeReplicas deletes everything that a set of that name, or one written the classic way, may have left in any slot.
func (t *Target) removeReplicas(ctx context.Context, name string) error {
	for slots := range slices.Chunk(t.slots(name), 1024) {
		_, err := t.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for _, slot := range slots {
				key := slotmap.KeyForSlot(name, slot)
				pipe.Unlink(ctx, key, key+":stamp", key+stageSuffix)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("bench: remove the keys that begin with %s: %w", name, err)
		}
	}
	return nil
}
