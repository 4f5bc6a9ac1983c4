package containers

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/harness/tcredis"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/tiercache"
)

// targets are the adapters, with the options that each recommends.
var targets = []conformance.Target{
	{
		Name: "goredis", Client: "github.com/redis/go-redis/v9",
		Backend: func(_ context.Context, to conformance.Connection) (replset.Backend, func(), error) {
			client := redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: to.Addrs, Username: to.Username, Password: to.Password, TLSConfig: to.TLS,
				ClusterStateReloadInterval: time.Second,
				ReadTimeout:                to.Patience, WriteTimeout: to.Patience,
			})
			return goredis.New(client), func() { client.Close() }, nil
		},
		Shard: func(_ context.Context, to conformance.Connection) (tiercache.Shard, func(), error) {
			client := redis.NewClient(&redis.Options{
				Addr: to.Addrs[0], Username: to.Username, Password: to.Password, TLSConfig: to.TLS,
				ReadTimeout: to.Patience, WriteTimeout: to.Patience,
			})
			return goredis.NewShard(client), func() { client.Close() }, nil
		},
	},
	{
		Name: "rueidis", Client: "github.com/redis/rueidis",
		Backend: func(_ context.Context, to conformance.Connection) (replset.Backend, func(), error) {
			client, err := rueidis.NewClient(rueidis.ClientOption{
				InitAddress: to.Addrs, Username: to.Username, Password: to.Password, TLSConfig: to.TLS,
				ConnWriteTimeout: to.Patience,
				ClusterOption:    rueidis.ClusterOption{ShardsRefreshInterval: time.Second},
			})
			if err != nil {
				return nil, nil, err
			}
			b, err := rueidisbackend.New(client)
			if err != nil {
				client.Close()
				return nil, nil, err
			}
			return b, client.Close, nil
		},
		Shard: func(_ context.Context, to conformance.Connection) (tiercache.Shard, func(), error) {
			client, err := rueidis.NewClient(rueidis.ClientOption{
				InitAddress: to.Addrs, Username: to.Username, Password: to.Password, TLSConfig: to.TLS,
				ConnWriteTimeout: to.Patience, ForceSingleClient: true,
			})
			if err != nil {
				return nil, nil, err
			}
			s, err := rueidisbackend.NewShard(client)
			if err != nil {
				client.Close()
				return nil, nil, err
			}
			return s, client.Close, nil
		},
	},
}

// TestConformance runs every profile, faults among them, and wants all core cases to pass, and the same status for each case as in the
// reports that are kept for servers in processes.
func TestConformance(t *testing.T) {
	for _, target := range targets {
		t.Run(target.Name, func(t *testing.T) {
			t.Parallel()
			target.Features = []conformance.Feature{conformance.ReplicaReader, conformance.Tracker, conformance.Dedicator}
			target.Profiles = conformance.Profiles
			target.Ring = conformance.ShardkitRing(nil)
			target.OnResult = func(r conformance.Result) {
				if r.Status.Bad() {
					t.Errorf("%s (%s) is %s: %s\nseen: %s\nthe servers: %s", r.ID, r.Name, r.Status, r.Requirement, r.Seen, r.State)
				}
			}
			// Started here, so that it is skipped where there is no Docker.
			o := harness.Options{Replicas: 1, Shards: 1, Private: true, NodeTimeout: conformance.NodeTimeout, Providers: []harness.Provider{tcredis.Containers(tcredis.Options{})}}
			target.Cluster, target.Shards = harnesstest.Cluster(t, o), harnesstest.Shards(t, o)
			report, err := conformance.Execute(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s on %s", target.Name, report.Servers.Provider)
			for _, p := range report.Profiles {
				t.Logf("%s: %s; core: %s; extended: %s", p.Profile, p.Verdict, conformance.Counts(p.Core), conformance.Counts(p.Extended))
				if p.Verdict != conformance.Conformant {
					t.Errorf("profile %s is %s, want %s", p.Profile, p.Verdict, conformance.Conformant)
				}
			}
			kept, err := conformance.ReadReport("../../conformance/reports/" + target.Name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range conformance.Differences(&kept, &report) {
				t.Errorf("other than in the report that is kept: %s", d)
			}
		})
	}
}
