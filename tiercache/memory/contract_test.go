package memory_test

import (
	"testing"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
	"github.com/shardkit/shardkit/tiercache/tiercachetest"
)

func TestContract(t *testing.T) {
	tiercachetest.Run(t, func(*testing.T) tiercache.Shard { return memory.New(nil) })
}
