package redigo

import (
	"context"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/tiercache"
)

var (
	_ replset.Backend = (*Backend)(nil)
	_ tiercache.Shard = (*Shard)(nil)
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Target{
		Name:   "redigo",
		Client: "github.com/gomodule/redigo",
		Backend: func(_ context.Context, c conformance.Connection) (replset.Backend, func(), error) {
			cluster := &redisc.Cluster{
				StartupNodes: c.Addrs,
				DialOptions:  options(c),
				CreatePool: func(addr string, o ...redis.DialOption) (*redis.Pool, error) {
					return &redis.Pool{MaxIdle: 16, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr, o...) }}, nil
				},
			}
			if err := cluster.Refresh(); err != nil {
				return nil, nil, err
			}
			return New(cluster), func() { cluster.Close() }, nil
		},
		Shard: func(_ context.Context, c conformance.Connection) (tiercache.Shard, func(), error) {
			pool := &redis.Pool{MaxIdle: 16, DialContext: func(ctx context.Context) (redis.Conn, error) {
				return redis.DialContext(ctx, "tcp", c.Addrs[0], options(c)...)
			}}
			return NewShard(pool), func() { pool.Close() }, nil
		},
	})
}

func options(c conformance.Connection) []redis.DialOption {
	return []redis.DialOption{
		redis.DialConnectTimeout(c.Patience), redis.DialReadTimeout(c.Patience), redis.DialWriteTimeout(c.Patience),
		redis.DialUsername(c.Username), redis.DialPassword(c.Password),
	}
}
