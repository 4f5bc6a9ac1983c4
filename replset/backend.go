package replset

import "context"

// Backend is what a Redis Cluster client must do for a replicated set: send
// commands to the master that owns a key's slot. It is small because everything
// else is a command. Adapters are written against its shape with std types
// only; shardkit's own are backends/goredis and backends/rueidis.
//
// For every method:
//
//   - The routing key decides the node: the command goes to the master that
//     owns the key's slot, whether or not the command names that key. A keyless
//     EVAL or CLUSTER SLOTS is sent this way too.
//   - The method is called concurrently from many goroutines.
//   - The slices belong to the caller: they are not changed, and not kept after
//     the method has returned. Strings are binary-safe.
//   - A reply is int64, string, nil or []any (elements likewise), in the shape
//     of RESP2 whatever the protocol: a map is a flat list, a double is a
//     string, a boolean is an integer. A missing key is a nil reply, not an
//     error.
//   - A server's error begins with the server's own text ("WRONGTYPE ...") and
//     keeps the client's error underneath, for errors.As. Any other error
//     (network, time-out) never begins with an upper-case word and a space.
//   - MOVED and ASK are followed, a bounded number of times; the redirect
//     itself comes back when that number is spent. Nothing else is retried:
//     not TRYAGAIN or CLUSTERDOWN (Set does that), and above all no command
//     that may have reached a server. A write is never sent twice.
//   - When ctx ends, the method returns promptly with an error for which
//     errors.Is(err, ctx.Err()) holds. The command may still take effect.
type Backend interface {
	// Do runs one command.
	Do(ctx context.Context, key string, cmd []string) (any, error)

	// Pipeline runs cmds[i] on the master that owns keys[i], one pipeline a
	// node, all nodes at once. It returns one element per command, in the
	// order of cmds: its reply, or its error. One node's failure leaves the
	// other nodes' replies as they are. No order holds between two commands of
	// one call: a redirect may overtake.
	Pipeline(ctx context.Context, keys []string, cmds [][]string) []any

	// Tx runs the commands as one MULTI/EXEC on one connection. All their keys
	// are in the routing key's slot. It is redirected as a whole or not at
	// all: no command of it runs on one node and another elsewhere.
	//
	// With a nil error all commands ran and there is one element per command,
	// its reply or its own error (WRONGTYPE does not undo the others). With an
	// error, either none ran or, after a network error, it is unknown.
	Tx(ctx context.Context, key string, cmds [][]string) ([]any, error)
}
