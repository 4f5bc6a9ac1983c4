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
// Recommended: ClusterStateReloadInterval of 1 s, and ReadTimeout and WriteTimeout
// of 500 ms, so that a master that froze is noticed soon after another took over.
// With the client's default options this package asks for a new slot map itself
// after a connection error, at most once a second.
//
// With time-outs of up to 500 ms a call whose context is cancelled returns by
// then. With longer ones, or the client's defaults, a context that can end costs
// a goroutine and its wake-ups per call, which on loopback about doubles the time
// of a short read: the client looks at no cancellation once a command is on its
// way. A deadline that is near is passed on to the client and costs none.
//
// Commands run on each node's own client, because the cluster client sends a
// keyless EVAL to a random node, splits a transaction by slot and follows
// redirects command by command. Hooks of the node clients (OnNewNode) see them;
// hooks added to the cluster client do not.
//
// # Guaranteed
//
// With any options of the client: a command is sent once, and a transaction is redirected as a whole. Redirects are bounded.
// A backend keeps nothing of the caller's slices, may be used by many goroutines, and has nothing to close.
//
// # Not guaranteed
//
// A command without keys gets no MOVED: until the client reads its slot map anew it runs on the old master of a slot that has
// moved. A call that ended by its context may still take effect, as with every client.
//
// # Errors
//
// An error of the server begins with the server's text, such as "WRONGTYPE ...". This package's own begin with "goredis:". The client's
// error, context.Canceled and context.DeadlineExceeded are found beneath by errors.Is and errors.As.
//
// # A cache's shard
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
//	cache, err := tiercache.New[User](map[string]tiercache.Shard{"a": goredis.NewShard(client)}, nil)
//
// A call ends by its context's deadline, and a command is sent once, whatever the
// client's ContextTimeoutEnabled and MaxRetries. A read through a shard takes 1.02
// times the client's own GET with a deadline, and a deadline costs 4 % of a read on
// loopback. A caller with a deadline makes his own connection where none is idle:
// leave time for three round trips.
package goredis
