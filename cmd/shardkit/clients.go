package main

import (
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/tiercache"
)

// Clients that can be chosen. Their options are go-redis's, whichever it is.
const (
	clientGoredis = "goredis"
	clientRueidis = "rueidis"
)

// openShard returns one server as a cache's shard, and how to be done with it. rueidis
// connects at once.
func openShard(client string, o redis.Options) (tiercache.Shard, func() error, error) {
	if client == clientGoredis {
		c := redis.NewClient(&o)
		return goredis.NewShard(c), c.Close, nil
	}
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{o.Addr}, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		ConnWriteTimeout: o.WriteTimeout, ForceSingleClient: true,
	})
	if err != nil {
		return nil, nil, err
	}
	s, err := rueidisbackend.NewShard(c)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return s, func() error { c.Close(); return nil }, nil
}

// openRueidis returns a cluster's backend over rueidis, and how to be done with it.
func openRueidis(o *redis.ClusterOptions) (*rueidisbackend.Backend, func() error, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: o.Addrs, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		ConnWriteTimeout: o.WriteTimeout,
		ClusterOption:    rueidis.ClusterOption{ShardsRefreshInterval: o.ClusterStateReloadInterval},
	})
	if err != nil {
		return nil, nil, err
	}
	b, err := rueidisbackend.New(c)
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return b, func() error { c.Close(); return nil }, nil
}
