package goredis_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/replsettest"
)

func TestContract(t *testing.T) {
	c := harnesstest.Cluster(t)
	for _, protocol := range []int{2, 3} {
		t.Run(map[int]string{2: "RESP2", 3: "RESP3"}[protocol], func(t *testing.T) {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Protocol: protocol})
			defer client.Close()
			b := goredis.New(client)
			replsettest.Run(t, func(*testing.T) replset.Backend { return b })
		})
	}
}
