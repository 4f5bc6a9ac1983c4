package goredis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// The server's error is first in the text, and the client's own is beneath.
func TestErrorsKeepTheClientsOwn(t *testing.T) {
	c := sharedCluster(t)
	b := connect(t, c)
	key := keyIn(t, 6000, "text")
	if _, err := b.Do(t.Context(), key, []string{"SET", key, "v"}); err != nil {
		t.Fatal(err)
	}
	for _, w := range ways {
		_, err := w.run(t.Context(), b, key, "SADD", key, "x")
		var server redis.Error
		if err == nil || !strings.HasPrefix(err.Error(), "WRONGTYPE ") || !errors.As(err, &server) || !redis.HasErrorPrefix(err, "WRONGTYPE") {
			t.Errorf("%s: got %v, want go-redis's own WRONGTYPE", w.name, err)
		}
	}
}

// The client is the caller's: a backend has nothing to close, several share one,
// and a closed client is an error and no panic.
func TestClientStaysTheCallers(t *testing.T) {
	c := sharedCluster(t)
	client := newClient(t, c)
	a, b := goredis.New(client), goredis.New(client)
	key := keyIn(t, 6001, "k")
	for _, w := range ways {
		if _, err := w.run(t.Context(), a, key, "SET", key, w.name); err != nil {
			t.Fatal(err)
		}
		if v, err := w.run(t.Context(), b, key, "GET", key); v != w.name || err != nil {
			t.Errorf("the other backend: got %v, %v", v, err)
		}
	}
	if err := client.Get(t.Context(), key).Err(); err != nil {
		t.Errorf("the client itself: %v", err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	for _, w := range ways {
		_, err := w.run(t.Context(), a, key, "GET", key)
		if !errors.Is(err, redis.ErrClosed) {
			t.Errorf("%s over a closed client: got %v, want %v", w.name, err, redis.ErrClosed)
		}
	}
}

// Hooks of the node clients see what is sent; that is where tracing hangs.
func TestNodeHooksSeeTheCommands(t *testing.T) {
	c := sharedCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()
	seen := &countingHook{}
	client.OnNewNode(func(node *redis.Client) { node.AddHook(seen) })
	b := goredis.New(client)
	key := keyIn(t, 6002, "k")
	for _, w := range ways {
		before := seen.commands.Load()
		if _, err := w.run(t.Context(), b, key, "GET", key); err != nil {
			t.Fatal(err)
		}
		if seen.commands.Load() == before {
			t.Errorf("%s passes the hooks by", w.name)
		}
	}
}

// A server that is not in cluster mode says so in its own words.
func TestServerOutsideAnyCluster(t *testing.T) {
	s := harnesstest.Shards(t, harness.Options{Shards: 1, Private: true})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: s.Addrs()})
	defer client.Close()
	b := goredis.New(client)
	for _, w := range ways {
		if _, err := w.run(t.Context(), b, "k", "GET", "k"); err == nil || !strings.HasPrefix(err.Error(), "ERR This instance has cluster support disabled") {
			t.Errorf("%s: got %v", w.name, err)
		}
	}
}
