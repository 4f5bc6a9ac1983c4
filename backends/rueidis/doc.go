// Package rueidisbackend connects shardkit to github.com/redis/rueidis.
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{
//		InitAddress:      []string{"127.0.0.1:7000"},
//		ConnWriteTimeout: 500 * time.Millisecond,
//		ClusterOption:    rueidis.ClusterOption{ShardsRefreshInterval: time.Second},
//	})
//	...
//	backend, err := rueidisbackend.New(client)
//	...
//	active, err := replset.New(backend, "active", nil)
//
// The client is the caller's: built with his options (TLS, ACL, time-outs), and
// closed by him. A backend has nothing to close.
//
// Guaranteed with any options: a command is sent once. rueidis repeats commands
// marked as read-only or retryable after an error of the connection; this
// package marks none, so DisableRetry and RetryDelay make no difference to it.
// A transaction is redirected as a whole. No panic of rueidis reaches the
// caller: a command with keys of two slots is the server's CROSSSLOT.
//
// # Recommended options
//
// A killed master is noticed at once, with any options: writes go on as soon as
// its replica is promoted. A frozen one (SIGSTOP, a lost network) is noticed
// when ConnWriteTimeout has passed, 10 s by default, or when the first caller's
// context ends. So set ConnWriteTimeout to 500 ms, or give calls a deadline.
// It must be longer than the server takes for the longest command, and for the
// longest transaction.
//
// ShardsRefreshInterval of 1 s is for the client's other users: this package
// keeps a slot map of its own, because rueidis shows its map to nobody, and
// reads it again after an error, at most twice a second, and after 10 s.
//
// Leave ConnLifetime at 0, its default. A command that is in flight when a
// connection's life ends fails here, where rueidis would send it again.
//
// # Not guaranteed
//
// A command without keys gets no MOVED. Until the next reading of the slot map
// it runs on the old master of a slot that has moved.
//
// With SendToReplicas or ReplicaOnly, a node that rueidis met as a replica keeps
// answering reads itself (READONLY) if it is made a master and then a replica
// again, until the next reading of the map.
//
// Commands share the connections of the client's other users. Blocking commands
// (BLPOP) get one of their own; those that change a connection for everybody
// (MULTI alone, WATCH, SUBSCRIBE, MONITOR) are refused.
//
// Replies have RESP2's shape for the commands of Redis 8 and Valkey 8 and
// earlier; a module's commands keep the structure that RESP3 gives them.
//
// # A cache's shard
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{
//		InitAddress:       []string{"127.0.0.1:6379"},
//		ForceSingleClient: true,
//		ConnWriteTimeout:  500 * time.Millisecond,
//	})
//	...
//	shard, err := rueidisbackend.NewShard(client)
//	...
//	cache, err := tiercache.New[User](map[string]tiercache.Shard{"a": shard}, nil)
//
// A call ends by its context's deadline, and a command is sent once, with one
// exception that cannot be switched off per call: at the end of a connection's
// life rueidis sends again what was not answered. So leave ConnLifetime at 0, its
// default. A read through a shard takes 1.02 times the client's own GET with a
// deadline, and a deadline costs a tenth of a read on loopback.
//
// One caller at a time waits on the connection itself, and closes it at his
// deadline; whoever comes meanwhile then gets an error before his own. Set
// AlwaysPipelining where deadlines differ much.
//
// # Errors
//
// An error of the server is its own text, such as "WRONGTYPE ...", over a
// *rueidis.RedisError; find that with errors.As, since rueidis.IsRedisErr does
// not look underneath. All others begin with "rueidisbackend:".
package rueidisbackend
