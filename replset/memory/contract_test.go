package memory_test

import (
	"testing"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/replset/replsettest"
)

func TestContract(t *testing.T) {
	replsettest.Run(t, func(*testing.T) replset.Backend { return memory.New() })
}
