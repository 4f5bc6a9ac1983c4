package goredis

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Dedicate returns what Pipeline is, over a client of its own with one connection.
// It has the options of the caller's client, without its hooks.
func (s *Shard) Dedicate() (pipeline func(ctx context.Context, cmds [][]string) []any, done func()) {
	o := *s.client.Options()
	o.PoolSize, o.MaxActiveConns, o.MinIdleConns, o.MaxIdleConns, o.PipelinePoolSize = 1, 0, 0, 0, -1
	o.MaxRetries, o.DialerRetries = -1, 1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ClientSideCacheConfig, o.ClientSideCache = nil, nil
	o.Limiter = nil
	// After a failed dial a client waits for a second before it dials again. So one
	// that failed is replaced.
	var own *Shard
	done = func() {
		if own != nil {
			own.client.Close()
			own = nil
		}
	}
	return func(ctx context.Context, cmds [][]string) []any {
		if own == nil {
			options := o
			own = &Shard{client: redis.NewClient(&options)}
		}
		replies := own.Pipeline(ctx, cmds)
		for _, reply := range replies {
			var server redis.Error
			if err, failed := reply.(error); failed && !errors.As(err, &server) {
				done()
				break
			}
		}
		return replies
	}, done
}
