package tiercache

import "context"

// Shard is what a Redis client must do for a cache: send commands to one Redis
// server, and deliver its notices. Everything else is a command. Adapters are
// written against its shape with std types only; shardkit's own are in
// backends/goredis and backends/rueidis, and package tiercachetest checks
// others.
//
// Caches that are built on one Shard share its connections, and none closes it:
// the client underneath is the user's. Only each Subscribe takes a connection of
// its own.
//
// For every method:
//
//   - It is called concurrently from many goroutines.
//   - The slices belong to the caller: they are not changed, and not kept after
//     the method has returned. Strings are binary-safe.
//   - A reply is int64, string, nil or []any (elements likewise), in the shape
//     of RESP2 whatever the protocol: a map is a flat list, a double is a
//     string, a boolean is an integer. A missing key is a nil reply, not an
//     error.
//   - A server's error begins with the server's own text ("NOSCRIPT ...") and
//     keeps the client's error underneath, for errors.As. Any other error
//     (network, time-out) never begins with an upper-case word and a space.
//   - A command is sent once. Nothing is retried that may have reached the
//     server, whatever the client's options say: a write whose outcome is
//     unknown must not land a second time, behind a newer one.
//   - When ctx's deadline passes, the method returns promptly with an error for
//     which errors.Is(err, context.DeadlineExceeded) holds. The command may
//     still take effect. A ctx that is cancelled before its deadline ends the
//     wait then, or at the deadline at the latest: to watch for more costs a
//     goroutine a call, which on a short read is as much as the read. So a
//     caller sets a deadline.
type Shard interface {
	// Do runs one command.
	Do(ctx context.Context, cmd []string) (any, error)

	// Pipeline sends the commands in one go, and the server runs them in the
	// order of cmds. Other clients' commands may come between. It returns one
	// element per command: its reply, or its error.
	Pipeline(ctx context.Context, cmds [][]string) []any

	// Tx runs the commands as one MULTI/EXEC.
	//
	// With a nil error all commands ran and there is one element per command,
	// its reply or its own error (WRONGTYPE does not undo the others). With an
	// error, either none ran or, after a network error, it is unknown.
	Tx(ctx context.Context, cmds [][]string) ([]any, error)

	// Subscribe subscribes to the channels on a connection of its own, and
	// delivers their messages until ctx ends or a message may have been lost.
	// Then it returns, never with nil: with an error for which errors.Is(err,
	// ctx.Err()) holds, or the reason. It never reconnects: whoever subscribes
	// again must know that there was a gap.
	//
	// onReady is called once, when the server has confirmed all channels: what
	// is published from then on is delivered. A server that does not answer is
	// waited for until ctx ends, or the client gives up. No channel is an error.
	//
	// onMessage is called with each message, in the server's order. Neither
	// function is called by two goroutines at once, nor after Subscribe has
	// returned. While one runs no other message is read, so it must be quick: a
	// server drops a subscriber that is 8 MB behind for a minute
	// (client-output-buffer-limit), and then Subscribe returns.
	//
	// ping goes to the server and back on the subscription's connection. It
	// returns nil when onMessage has returned for every message that the server
	// sent before it answered. It may be called from any goroutine but not
	// within onReady or onMessage, and returns an error when its ctx ends, which
	// leaves the subscription as it is, or when Subscribe is about to return.
	Subscribe(ctx context.Context, channels []string,
		onReady func(ping func(context.Context) error),
		onMessage func(channel, payload string)) error
}

// Tracker is for a Shard whose server can tell which keys change, whoever
// changes them: Options.Tracking.
type Tracker interface {
	Shard

	// Track is Subscribe, and delivers also the names of keys that begin with the
	// prefix, each time they change, expire or are evicted; "" means all keys.
	//
	// onChange is called as onMessage is, and never at the same time. Its keys are
	// the callee's to keep; nil means all keys, which FLUSHALL changes. Changes that
	// come at one time may be told as one, a change may be told of a key that has
	// none, and other connections may show what changed before onChange tells it. But
	// when ping returns nil, onChange has returned for every change before the last
	// command that had been answered, on any connection, when ping was called.
	//
	// A server that cannot is an error that is returned before onReady.
	Track(ctx context.Context, channels []string, prefix string,
		onReady func(ping func(context.Context) error),
		onMessage func(channel, payload string),
		onChange func(keys []string)) error
}

// A Dedicator is a Shard that can send commands on a connection of their own, behind
// no other command: a cache's probes are to tell a server that does not answer from
// one that is busy with large values.
type Dedicator interface {
	// Dedicate returns a function that does what Pipeline does, on one connection
	// that nobody else uses, and one that ends it. It does no I/O: the connection is
	// made with the first call, and again by the first call after it was lost, or after
	// a call without an answer. Calls come one at a time.
	Dedicate() (pipeline func(ctx context.Context, cmds [][]string) []any, done func())
}
