package rueidisbackend

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"
)

// call is exchange, except that it returns as soon as ctx ends. rueidis itself
// waits without looking at ctx where another caller is dialling the same node,
// where a connection's queue is full, and, for a context with a deadline, until
// that deadline even if it is cancelled before.
func (b *Backend) call(ctx context.Context, to target, cmds []rueidis.Completed) ([]rueidis.RedisResult, error) {
	if ctx.Done() == nil {
		return b.exchange(ctx, to, cmds)
	}
	type answer struct {
		results []rueidis.RedisResult
		err     error
	}
	done := make(chan answer, 1)
	go func() {
		results, err := b.exchange(ctx, to, cmds)
		done <- answer{results, err}
	}()
	select {
	case a := <-done:
		return a.results, a.err
	case <-ctx.Done():
		return nil, gaveUp(ctx.Err())
	}
}

// exchange sends commands to one node, next to each other on one connection, and
// waits for the answers. They are sent at most once:
//
//   - The node's own client follows no redirect.
//   - A command built without ReadOnly or ToRetryable is not retryable, and
//     DoMulti repeats only what is retryable throughout, whatever DisableRetry
//     and RetryDelay say.
//   - DoMulti of the node's client does not repeat after the end of a
//     connection's life (ConnLifetime) either; its Do does, and is not used.
//     A dedicated client's connection has no such end.
//
// The end of ctx is hidden from rueidis, because it acts on it at other callers'
// cost: at a deadline it closes the connection that they share, and a cancelled
// dial fails for all who wait for it. Only a blocking command has a connection
// of its own, and needs the end of ctx to leave it.
func (b *Backend) exchange(ctx context.Context, to target, cmds []rueidis.Completed) (results []rueidis.RedisResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rueidisbackend: %s: rueidis panicked: %v", to.addr, p)
		}
	}()
	client, release, err := b.node(ctx, to)
	if err != nil {
		return nil, err
	}
	defer release()
	inner := context.WithoutCancel(ctx)
	if blocks(cmds) {
		var cancel context.CancelFunc
		inner, cancel = context.WithCancel(inner) // the end without the deadline
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
	}
	results = client.DoMulti(inner, cmds...)
	if len(results) != len(cmds) {
		return nil, fmt.Errorf("rueidisbackend: %s: %d results for %d commands: look at the hooks around the client", to.addr, len(results), len(cmds))
	}
	return results, nil
}

func blocks(cmds []rueidis.Completed) bool {
	for i := range cmds {
		if cmds[i].IsBlock() {
			return true
		}
	}
	return false
}
