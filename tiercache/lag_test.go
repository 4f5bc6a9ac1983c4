package tiercache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// slowBus is a shard whose subscription is behind.
type slowBus struct{ tiercache.Shard }

const behind = 70 * time.Millisecond

func (s slowBus) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(channel, payload string)) error {
	return s.Shard.Subscribe(ctx, channels, func(ping func(context.Context) error) {
		onReady(func(ctx context.Context) error {
			time.Sleep(behind)
			return ping(ctx)
		})
	}, onMessage)
}

func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open[int](t, one(slowBus{memory.New(nil)}), nil)
		synced(t, c)
		if lag := c.Stats().Shards[0].Lag; lag != behind {
			t.Errorf("got %v, want %v", lag, behind)
		}
	})
}
