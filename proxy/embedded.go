package proxy

import (
	"context"
	"fmt"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// EmbeddedBytes bounds what each shard of Embedded holds.
const EmbeddedBytes = 64 << 20

// sweepEvery is how often Embedded looks for values whose lives are over.
const sweepEvery = 10 * time.Second

// Embedded returns n shards, shard-1 to shard-n, that are in this process: to try a
// proxy without a Redis. They keep nothing when the process ends, and no other
// process shares them. One that is full drops values, any of them first. What has
// expired is removed until ctx ends.
func Embedded(ctx context.Context, n int) map[string]tiercache.Shard {
	shards := make(map[string]tiercache.Shard, n)
	for i := range n {
		shards[fmt.Sprintf("shard-%d", i+1)] = memory.New(&memory.Options{MaxBytes: EmbeddedBytes})
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
