// Package shard holds tests of the adapters' shards, which are what a cache sees
// of a Redis server, on real servers.
package shard

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/tiercache"
)

var (
	_ tiercache.Shard = (*goredis.Shard)(nil)
	_ tiercache.Shard = (*rueidisbackend.Shard)(nil)
)

// A call that was left at its deadline goes on until the client's own time-outs,
// and rueidis ends its goroutines some time after Close.
func TestMain(m *testing.M) {
	os.Exit(harnesstest.Main(m, func() error { return goleak.Find() }))
}

// client is a way to reach a server.
type client struct {
	name string
	dial func(addr string) (tiercache.Shard, func(), error)
}

func goRedis(protocol int) func(addr string) (tiercache.Shard, func(), error) {
	return func(addr string) (tiercache.Shard, func(), error) {
		client := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol})
		return goredis.NewShard(client), func() { client.Close() }, nil
	}
}

func rueidisOf(resp2 bool) func(addr string) (tiercache.Shard, func(), error) {
	return func(addr string) (tiercache.Shard, func(), error) {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{addr}, ForceSingleClient: true, AlwaysRESP2: resp2, DisableCache: resp2,
		})
		if err != nil {
			return nil, nil, err
		}
		s, err := rueidisbackend.NewShard(client)
		return s, client.Close, err
	}
}

// clients have the options that a user gets who sets none.
var clients = []client{
	{"goredis", goRedis(3)},
	{"goredis-resp2", goRedis(2)},
	{"rueidis", rueidisOf(false)},
	{"rueidis-resp2", rueidisOf(true)},
}

// eachClient runs a test over each client of one server.
func eachClient(t *testing.T, addr string, test func(t *testing.T, s tiercache.Shard)) {
	t.Helper()
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) { test(t, c.open(t, addr)) })
	}
}

func (c client) open(t *testing.T, addr string) tiercache.Shard {
	t.Helper()
	s, done, err := c.dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return s
}

// server is one of this test's own, which it may break.
func server(t *testing.T, o harness.Options) *harness.Node {
	t.Helper()
	o.Shards, o.Private = 1, true
	return harnesstest.Shards(t, o).Nodes()[0]
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
