package proxy

import (
	"context"
	"fmt"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// sweepEvery is how often Embedded looks for values whose lives are over.
const sweepEvery = 10 * time.Second

// Embedded returns n shards, shard-1 to shard-n, that are in this process: to try a
// proxy without a Redis. They keep nothing when the process ends, and no other
// process shares them. What has expired is removed until ctx ends.
func Embedded(ctx context.Context, n int) map[string]tiercache.Shard {
	shards := make(map[string]tiercache.Shard, n)
	for i := range n {
		shards[fmt.Sprintf("shard-%d", i+1)] = memory.New(nil)
	}
	go func() {
		tick := time.NewTicker(sweepEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, shard := range shards {
				// To count its keys a memory.Shard removes those that have expired.
				_, _ = shard.Do(ctx, []string{"DBSIZE"})
			}
		}
	}()
	return shards
}
