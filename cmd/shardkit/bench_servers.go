package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/bench/scenarios"
	"github.com/shardkit/shardkit/harness"
)

// benchServers returns what the parts run on: the user's cluster, or servers made for this run from a binary; what that is; and
// how to be done with it. The target is nil where the parts need none.
func benchServers(ctx context.Context, parts []scenarios.Part, s server, binary string) (t *scenarios.Target, where string, end func() error, err error) {
	var ends []func() error
	stop := func() error {
		var errs []error
		for _, f := range slices.Backward(ends) {
			errs = append(errs, f())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	var about []string
	t = &scenarios.Target{}
	o := harness.Options{Private: true, Server: binary}
	other := scenarios.Adapter{Name: clientRueidis}
	switch {
	case !scenarios.NeedCluster(parts):
	case len(s.Addr) > 0:
		if t.Client, err = s.connect(ctx, recommended); err != nil {
			return nil, "", nil, err
		}
		ends = append(ends, t.Client.Close)
		about = append(about, "cluster at "+strings.Join(s.Addr, ", "))
	default:
		own, err := harness.StartCluster(ctx, o)
		if err != nil {
			return nil, "", nil, err
		}
		options := &redis.ClusterOptions{Addrs: own.Addrs()}
		recommended(options)
		t.Client = redis.NewClusterClient(options)
		ends = append(ends, own.Close, t.Client.Close)
		about = append(about, "3 masters, "+servedBy(own.Provider()))
	}
	if t.Client != nil {
		b, done, err := openRueidis(t.Client.Options())
		if err != nil {
			return nil, "", nil, fmt.Errorf("rueidis: %w", err)
		}
		other.Backend, ends = b, append(ends, done)
	}
	if scenarios.NeedShards(parts) {
		o.Shards = 3
		own, err := harness.StartShards(ctx, o)
		if err != nil {
			return nil, "", nil, err
		}
		ends = append(ends, own.Close)
		t.Shards, t.Nodes = shardClients(own.Addrs()), own.Nodes()
		for _, client := range t.Shards {
			ends = append(ends, client.Close)
			shard, done, err := openShard(clientRueidis, *client.Options())
			if err != nil {
				return nil, "", nil, fmt.Errorf("rueidis: %w", err)
			}
			other.Shards, ends = append(other.Shards, shard), append(ends, done)
		}
		about = append(about, "3 shards, "+servedBy(own.Provider()))
	}
	t.Others = []scenarios.Adapter{other}
	if len(about) == 0 {
		t = nil
	}
	return t, cmp.Or(strings.Join(about, "; "), "without servers"), stop, nil
}

// servedBy leaves out where the binary lies: a report is for others to read.
func servedBy(provider string) string {
	name, _, _ := strings.Cut(provider, " (")
	return name
}

func shardClients(addrs []string) []*redis.Client {
	var clients []*redis.Client
	for _, addr := range addrs {
		clients = append(clients, redis.NewClient(&redis.Options{
			Addr: addr, DialTimeout: 500 * time.Millisecond, DialerRetries: 1, ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
		}))
	}
	return clients
}

// needsOwnServers fails if the user's cluster is named for parts that cannot use it.
func needsOwnServers(parts []scenarios.Part, s server) error {
	if len(s.Addr) > 0 && scenarios.NeedShards(parts) {
		return errors.New("cache and failover run on independent servers of their own: leave out --addr, or these")
	}
	return nil
}

// recommended sets what package goredis recommends to its users.
func recommended(o *redis.ClusterOptions) {
	o.ClusterStateReloadInterval = time.Second
	o.ReadTimeout, o.WriteTimeout = 500*time.Millisecond, 500*time.Millisecond
}
