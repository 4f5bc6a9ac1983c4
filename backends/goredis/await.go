package goredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// soon is how long after the end of its context a call may return.
const soon = 500 * time.Millisecond

// await runs f and returns its result, or ctx's error soon after ctx ends. Once
// a command is on its way the client looks at no cancellation, so where its
// time-out or ctx's deadline is not soon, f runs in a goroutine, which goes on in
// the background. Its wake-ups take longer than a short read on loopback.
func await[T any](ctx context.Context, b *Backend, f func() (T, error)) (T, error) {
	var none T
	if ctx.Done() == nil {
		return f()
	}
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("goredis: nothing was sent: %w", err)
	}
	deadline, limited := ctx.Deadline()
	if b.quick || limited && time.Until(deadline) <= soon {
		return f()
	}
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		b.sawError(ctx, ctx.Err())
		return none, ended(ctx, ctx.Err())
	}
}

// quick tells whether a client's time-outs are soon.
func quick(o *redis.ClusterOptions) bool {
	return o.ReadTimeout > 0 && o.ReadTimeout <= soon && o.WriteTimeout > 0 && o.WriteTimeout <= soon
}

// until is node with time-outs that end no later than ctx's deadline.
func until(ctx context.Context, node *redis.Client) *redis.Client {
	deadline, limited := ctx.Deadline()
	if !limited {
		return node
	}
	limit, o := time.Until(deadline)+time.Millisecond, node.Options() // ctx ends before the client's clock does
	if 0 < o.ReadTimeout && o.ReadTimeout <= limit && 0 < o.WriteTimeout && o.WriteTimeout <= limit {
		return node
	}
	if o.ReadTimeout > 0 {
		limit = min(limit, o.ReadTimeout)
	}
	return node.WithTimeout(max(limit, time.Millisecond))
}

// ended adds ctx's error, if it has ended, to what the network said. On a busy
// machine the network tells of a deadline that has passed before ctx does.
func ended(ctx context.Context, err error) error {
	end := ctx.Err()
	if deadline, limited := ctx.Deadline(); end == nil && limited && !time.Now().Before(deadline) {
		end = context.DeadlineExceeded
	}
	var server redis.Error
	if end == nil || errors.As(err, &server) {
		return err
	}
	if errors.Is(err, end) {
		return fmt.Errorf("goredis: gave up waiting for the reply: %w", err)
	}
	return fmt.Errorf("goredis: gave up waiting for the reply: %w (%w)", end, err)
}
