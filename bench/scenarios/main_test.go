package scenarios

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/slotmap"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(peerMode); mode != "" {
		servePeer(mode)
		return
	}
	if part := os.Getenv(servePart); part != "" {
		os.Exit(serveGate(part))
	}
	os.Exit(harnesstest.Main(m, func() error { return goleak.Find() }))
}

// target is a cluster of the tests' own, and whoever looks at it from outside.
func target(t *testing.T) (*Target, *harness.Cluster) {
	t.Helper()
	c := harnesstest.SharedCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	// Every 64th slot: what is tested here is not how long it takes.
	tg := &Target{Client: client, Others: []Adapter{{Name: "other", Backend: goredis.New(client)}, {Name: "of-shards-alone"}}}
	tg.Worker = func(p Part) *exec.Cmd { return build(t, p.Name, strings.Join(c.Addrs(), ","), "")() }
	for slot := uint16(0); slot < slotmap.Slots; slot += 64 {
		tg.some = append(tg.some, slot)
	}
	return tg, c
}
