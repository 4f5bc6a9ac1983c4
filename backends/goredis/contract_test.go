package goredis_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/replsettest"
)

func TestContract(t *testing.T) {
	c := sharedCluster(t)
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprint("RESP", protocol), func(t *testing.T) {
			b := connect(t, c, func(o *redis.ClusterOptions) { o.Protocol = protocol })
			replsettest.Run(t, func(*testing.T) replset.Backend { return b })
		})
	}
	// Options for reading must not send commands to replicas.
	t.Run("ReadOnly", func(t *testing.T) {
		b := connect(t, c, func(o *redis.ClusterOptions) { o.ReadOnly, o.RouteRandomly = true, true })
		replsettest.Run(t, func(*testing.T) replset.Backend { return b })
	})
}
