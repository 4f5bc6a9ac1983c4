package shard

import (
	"testing"

	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/tiercachetest"
)

func TestContract(t *testing.T) {
	addr := harnesstest.SharedShards(t).Addrs()[0]
	eachClient(t, addr, func(t *testing.T, s tiercache.Shard) {
		tiercachetest.Run(t, func(*testing.T) tiercache.Shard { return s })
	})
}
