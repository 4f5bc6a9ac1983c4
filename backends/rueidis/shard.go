package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// Shard sends the commands of a cache over a rueidis.Client of one Redis. Its
// methods satisfy tiercache.Shard, whose documentation holds for them.
type Shard struct {
	client  rueidis.Client
	builder rueidis.Builder
	addr    string

	multi    atomic.Bool   // MULTI is accepted
	inFlight atomic.Int64  // calls
	lost     atomic.Uint64 // calls that ended without an answer
	answered atomic.Uint64 // what lost was when the last answered call began
}

// directAtOnce is how many calls at once go to rueidis without a goroutine each.
// A connection's queue holds 1024 calls by default (RingScaleEachConn), and who
// finds it full waits there without looking at ctx.
const directAtOnce = 256

// NewShard returns a shard over the caller's client, which stays the caller's to
// close. It does no I/O. It refuses a client of a Redis Cluster.
func NewShard(client rueidis.Client) (*Shard, error) {
	if client == nil {
		return nil, errors.New("rueidisbackend: NewShard: the client is nil")
	}
	if client.Mode() == rueidis.ClientModeCluster {
		return nil, errors.New("rueidisbackend: NewShard: the client is of a Redis Cluster: give rueidis.NewClient the address of a server that is not in cluster mode, or ForceSingleClient")
	}
	s := &Shard{client: client, builder: client.B(), addr: "no server"}
	for s.addr = range client.Nodes() { // it has one
	}
	s.lost.Store(1)
	return s, nil
}

// Do runs one command.
func (s *Shard) Do(ctx context.Context, cmd []string) (any, error) {
	if err := refuse(cmd); err != nil {
		return nil, err
	}
	v := s.send(ctx, build(s.builder, cmd))[0]
	if err, failed := v.(error); failed {
		return nil, err
	}
	return shape(cmd, v), nil
}

// Pipeline sends the commands in one go.
func (s *Shard) Pipeline(ctx context.Context, cmds [][]string) []any {
	if len(cmds) == 0 {
		return []any{}
	}
	built := make([]rueidis.Completed, len(cmds))
	for i, cmd := range cmds {
		if err := refuse(cmd); err != nil {
			return fill(len(cmds), err)
		}
		built[i] = build(s.builder, cmd)
	}
	replies := s.send(ctx, built...)
	for i, cmd := range cmds {
		replies[i] = shape(cmd, replies[i])
	}
	return replies
}

// Tx runs the commands as one MULTI/EXEC.
func (s *Shard) Tx(ctx context.Context, cmds [][]string) ([]any, error) {
	built := make([]rueidis.Completed, 0, len(cmds)+2)
	built = append(built, build(s.builder, []string{"MULTI"}))
	for _, cmd := range cmds {
		if err := refuse(cmd); err != nil {
			return nil, err
		}
		built = append(built, build(s.builder, cmd))
	}
	built = append(built, build(s.builder, []string{"EXEC"}))
	if !s.multi.Load() {
		// Where MULTI is refused (an ACL), the commands after it would run one
		// by one. So the first transaction is empty.
		first := s.send(ctx, build(s.builder, []string{"MULTI"}), build(s.builder, []string{"EXEC"}))
		if _, err := executed(nil, first); err != nil {
			return nil, err
		}
		s.multi.Store(true)
	}
	return executed(cmds, s.send(ctx, built...))
}

// send sends commands next to each other on one connection, and returns a reply
// or an error for each.
func (s *Shard) send(ctx context.Context, cmds ...rueidis.Completed) []any {
	if err := ctx.Err(); err != nil {
		return fill(len(cmds), notSent(err))
	}
	results, err := s.exchange(ctx, cmds)
	if err != nil {
		return fill(len(cmds), err)
	}
	replies := make([]any, len(results))
	for i, r := range results {
		if err := r.NonRedisError(); err != nil {
			replies[i] = failure(ctx, s.addr, err)
			continue
		}
		m, _ := r.ToMessage()
		replies[i] = plain(&m)
	}
	return replies
}

// exchange calls rueidis directly, with ctx, while all is well: a goroutine that
// watches ctx makes a short read take half as long again. rueidis waits without
// looking at ctx where another caller is dialling and where a connection's queue
// is full; so after a call without an answer, until one has been answered that
// began later, and with very many calls at once, it is called aside.
//
// The commands are sent once, whatever DisableRetry says: none is marked as
// read-only or retryable. The exception is ConnLifetime, see the package's
// documentation.
func (s *Shard) exchange(ctx context.Context, cmds []rueidis.Completed) (results []rueidis.RedisResult, err error) {
	lost := s.lost.Load()
	if s.inFlight.Add(1) <= directAtOnce && s.answered.Load() == lost {
		if len(cmds) == 1 {
			results = []rueidis.RedisResult{s.client.Do(ctx, cmds[0])}
		} else {
			results = s.client.DoMulti(ctx, cmds...)
		}
	} else {
		results, err = s.aside(ctx, cmds)
	}
	s.inFlight.Add(-1)
	switch {
	case err == nil && len(results) != len(cmds):
		return nil, fmt.Errorf("rueidisbackend: %s: %d results for %d commands: look at the hooks around the client", s.addr, len(results), len(cmds))
	case err != nil || results[len(results)-1].NonRedisError() != nil:
		if !errors.Is(ctx.Err(), context.Canceled) { // which says nothing about the server
			s.lost.Add(1)
		}
	case s.answered.Load() != lost:
		s.answered.Store(lost)
	}
	return results, err
}

// aside leaves at the end of ctx, which it keeps from rueidis: a dial that takes
// longer than any caller waits is to succeed in the end.
func (s *Shard) aside(ctx context.Context, cmds []rueidis.Completed) ([]rueidis.RedisResult, error) {
	done := make(chan []rueidis.RedisResult, 1)
	go func() { done <- s.client.DoMulti(context.WithoutCancel(ctx), cmds...) }()
	select {
	case results := <-done:
		return results, nil
	case <-ctx.Done():
		return nil, gaveUp(ctx.Err())
	}
}
