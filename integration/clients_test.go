package integration

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
)

// login is a server's user, and how to reach it; the zero value is the default
// user, without TLS.
type login struct {
	name, password string
	tls            *tls.Config
}

// client is a way to reach a cluster.
type client struct {
	name string
	dial func(t *testing.T, addrs []string, as login, timeout time.Duration) (replset.Backend, error)
}

// open connects with a time-out that a busy machine does not meet.
func (c client) open(t *testing.T, addrs []string, as login) (replset.Backend, error) {
	return c.dial(t, addrs, as, 10*time.Second)
}

// clients are the ways to reach a cluster, with options near those that each
// adapter recommends.
var clients = []client{
	{"goredis", func(t *testing.T, addrs []string, as login, timeout time.Duration) (replset.Backend, error) {
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: addrs, Username: as.name, Password: as.password, TLSConfig: as.tls,
			ClusterStateReloadInterval: time.Second,
			ReadTimeout:                timeout,
		})
		t.Cleanup(func() { client.Close() })
		return goredis.New(client), nil
	}},
	{"rueidis", func(t *testing.T, addrs []string, as login, timeout time.Duration) (replset.Backend, error) {
		client, err := rueidis.NewClient(rueidis.ClientOption{
			InitAddress: addrs, Username: as.name, Password: as.password, TLSConfig: as.tls,
			ConnWriteTimeout: timeout,
			ClusterOption:    rueidis.ClusterOption{ShardsRefreshInterval: time.Second},
		})
		if err != nil {
			return nil, err
		}
		t.Cleanup(client.Close)
		return rueidisbackend.New(client)
	}},
}

// eachClient runs a test over each client.
func eachClient(t *testing.T, c *harness.Cluster, test func(t *testing.T, b replset.Backend)) {
	t.Helper()
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) { test(t, open(t, client.name, c)) })
	}
}

// open returns a backend over a new client, as the default user.
func open(t *testing.T, client string, c *harness.Cluster) replset.Backend {
	t.Helper()
	return openAs(t, client, c, login{})
}

func openAs(t *testing.T, client string, c *harness.Cluster, as login) replset.Backend {
	t.Helper()
	for _, cl := range clients {
		if cl.name == client {
			b, err := cl.open(t, c.Addrs(), as)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	t.Fatalf("there is no client %q", client)
	return nil
}

// serverError is an error in a server's words.
type serverError string

func (e serverError) Error() string { return string(e) }

// refusing is a backend whose servers refuse some commands, as managed services
// do.
type refusing struct {
	replset.Backend
	refuse func(cmd []string) error
}

func (r refusing) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if err := r.refuse(cmd); err != nil {
		return nil, err
	}
	return r.Backend.Do(ctx, key, cmd)
}

func (r refusing) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	for _, cmd := range cmds {
		if err := r.refuse(cmd); err != nil {
			replies := make([]any, len(cmds))
			for i := range replies {
				replies[i] = err
			}
			return replies
		}
	}
	return r.Backend.Pipeline(ctx, keys, cmds)
}

func isScript(cmd []string) bool { return cmd[0] == "EVAL" || cmd[0] == "EVALSHA" }

// keyless reports whether cmd is a script that declares no key.
func keyless(cmd []string) bool { return isScript(cmd) && len(cmd) > 2 && cmd[2] == "0" }

// misrouted sends scripts without keys to a node that holds none of what they
// touch, so that every access fails: as with a service that lets a script touch
// declared keys only.
type misrouted struct{ replset.Backend }

func (m misrouted) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if keyless(cmd) {
		key = elsewhere(key)
	}
	return m.Backend.Do(ctx, key, cmd)
}

// rungs are the ways in which a set may be written, best first.
var rungs = []struct {
	name string
	wrap func(b replset.Backend) replset.Backend
}{
	{"many replicas a script", func(b replset.Backend) replset.Backend { return b }},
	{"scripts without keys are refused", func(b replset.Backend) replset.Backend {
		return refusing{b, func(cmd []string) error {
			if keyless(cmd) {
				return serverError("ERR a script must declare its keys")
			}
			return nil
		}}
	}},
	{"undeclared keys are refused", func(b replset.Backend) replset.Backend { return misrouted{b} }},
	{"transactions", func(b replset.Backend) replset.Backend {
		return refusing{b, func(cmd []string) error {
			if isScript(cmd) {
				return serverError("NOPERM this user has no permissions to run the 'evalsha' command")
			}
			return nil
		}}
	}},
}
