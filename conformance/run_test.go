package conformance

import (
	"context"
	"testing"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
)

// The package's own subjects: shardkit's slots and ring, and the in-memory backend and shard, which do not know every command.
func TestConformance(t *testing.T) {
	Run(t, Target{
		Name:       "memory",
		Serverless: true,
		Backend: func(context.Context, Connection) (replset.Backend, func(), error) {
			return memory.New(), nil, nil
		},
		Ring:  ShardkitRing(nil),
		Shard: inMemoryShard,
	})
}
