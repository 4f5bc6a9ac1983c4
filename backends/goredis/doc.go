// Package goredis connects shardkit to github.com/redis/go-redis/v9.
//
//	client := redis.NewClusterClient(&redis.ClusterOptions{
//		Addrs:                      []string{"127.0.0.1:7000"},
//		ClusterStateReloadInterval: time.Second,
//	})
//	active, err := replset.New(goredis.New(client), "active", nil)
//
// The client is the caller's: built with his options (TLS, ACL, time-outs), and
// closed by him.
//
// Recommended: ClusterStateReloadInterval of 1 s and ReadTimeout below 1 s, so
// that a master that froze is noticed soon after another took over. With the
// client's default options this package asks for a new slot map itself after a
// connection error, at most once a second.
//
// A context that can be cancelled costs a goroutine and its wake-up per call,
// which on loopback about doubles the time of a short read: the client looks at
// no cancellation once a command is on its way. With context.Background() a call
// takes what the client's own pipeline takes.
//
// Commands run on each node's own client, because the cluster client sends a
// keyless EVAL to a random node, splits a transaction by slot and follows
// redirects command by command. Hooks of the node clients (OnNewNode) see them;
// hooks added to the cluster client do not.
package goredis
