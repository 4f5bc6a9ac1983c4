package goredis

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Shard sends the commands of a cache over a *redis.Client, which is one Redis
// or, made by NewFailoverClient, one master. Its methods satisfy
// tiercache.Shard, whose documentation holds for them.
type Shard struct {
	client *redis.Client
	multi  atomic.Bool // MULTI is accepted
}

// NewShard returns a shard over the caller's client, which stays the caller's to
// close. It uses the client's connections and hooks, but its own values for two
// options: ContextTimeoutEnabled is true, and MaxRetries is 0. The client's
// other users keep theirs.
func NewShard(client *redis.Client) *Shard {
	theirs := client.Options()
	// This copy has the connections of the original and options of its own.
	own := client.WithTimeout(theirs.ReadTimeout)
	o := own.Options()
	o.WriteTimeout = theirs.WriteTimeout
	// The connection's own deadline ends a call: a goroutine that watches ctx
	// costs as much as a short read.
	o.ContextTimeoutEnabled = true
	// A write that timed out may have taken effect.
	o.MaxRetries = 0
	return &Shard{client: own}
}

// Do runs one command.
func (s *Shard) Do(ctx context.Context, cmd []string) (any, error) {
	if len(cmd) == 0 {
		return nil, errNoCommand
	}
	sent := redis.NewCmd(ctx, words(cmd)...)
	_ = s.client.Process(ctx, sent) // it holds its error
	v := reply(ctx, sent)
	if err, failed := v.(error); failed {
		return nil, err
	}
	return resp2(v), nil
}

// Pipeline sends the commands in one go.
func (s *Shard) Pipeline(ctx context.Context, cmds [][]string) []any {
	for _, cmd := range cmds {
		if len(cmd) == 0 {
			return fill(len(cmds), errNoCommand)
		}
	}
	return resp2Each(s.send(ctx, wordsOf(cmds)))
}

// Tx runs the commands as one MULTI/EXEC.
func (s *Shard) Tx(ctx context.Context, cmds [][]string) ([]any, error) {
	all := transaction(cmds)
	for _, cmd := range all {
		if len(cmd) == 0 {
			return nil, errNoCommand
		}
	}
	if !s.multi.Load() {
		// Where MULTI is refused (an ACL), the commands after it would run one
		// by one. So the first transaction is empty.
		if _, err := executed(s.send(ctx, transaction(nil)), 0); err != nil {
			return nil, err
		}
		s.multi.Store(true)
	}
	return executed(s.send(ctx, all), len(cmds))
}

func (s *Shard) send(ctx context.Context, cmds []command) []any {
	pipe := s.client.Pipeline()
	sent := make([]*redis.Cmd, len(cmds))
	for i, cmd := range cmds {
		sent[i] = redis.NewCmd(ctx, cmd...)
		_ = pipe.Process(ctx, sent[i])
	}
	_, _ = pipe.Exec(ctx) // each command holds its own error
	replies := make([]any, len(cmds))
	for i, cmd := range sent {
		replies[i] = reply(ctx, cmd)
	}
	return replies
}

// reply is a command's reply as the client has it, or its error.
func reply(ctx context.Context, cmd *redis.Cmd) any {
	v, err := cmd.Result()
	var server redis.Error
	switch {
	case err == nil:
		return v
	case errors.Is(err, redis.Nil):
		return nil
	case errors.As(err, &server):
		return err
	}
	return failure(ctx, err)
}

// failure is an error that no server said.
func failure(ctx context.Context, err error) error {
	ended := ctx.Err()
	if deadline, ok := ctx.Deadline(); ended == nil && ok && !time.Now().Before(deadline) {
		ended = context.DeadlineExceeded // which the connection noticed before ctx
	}
	switch {
	case ended != nil:
		return fmt.Errorf("goredis: %w, and the command may still take effect: %w", err, ended)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		// A dial's own time-out calls itself context.DeadlineExceeded. Callers
		// would take it for the end of their own context.
		return fmt.Errorf("goredis: %v", err)
	}
	return fmt.Errorf("goredis: %w", err)
}

var errNoCommand = errors.New("goredis: the command is empty")
