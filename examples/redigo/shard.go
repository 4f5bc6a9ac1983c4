package redigo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gomodule/redigo/redis"
)

// Shard sends the commands of a cache over the caller's *redis.Pool, which he closes. It satisfies tiercache.Shard by shape.
type Shard struct{ pool *redis.Pool }

// NewShard returns a shard over the pool. Its DialContext, which is needed, has time-outs.
func NewShard(pool *redis.Pool) *Shard { return &Shard{pool} }

// Do runs one command.
func (s *Shard) Do(ctx context.Context, cmd []string) (any, error) {
	return only(s.Pipeline(ctx, [][]string{cmd})[0])
}

// Pipeline sends the commands in one go.
func (s *Shard) Pipeline(ctx context.Context, cmds [][]string) []any {
	all := words(cmds)
	replies, err := await(ctx, func() ([]any, error) {
		conn, err := s.pool.GetContext(ctx)
		if err != nil {
			return nil, err
		}
		return send(conn, all), nil
	})
	if err != nil {
		return fill(len(cmds), err)
	}
	return replies
}

// Tx runs the commands as one MULTI/EXEC.
func (s *Shard) Tx(ctx context.Context, cmds [][]string) ([]any, error) {
	return executed(s.Pipeline(ctx, slices.Concat([][]string{{"MULTI"}}, cmds, [][]string{{"EXEC"}})))
}

// Subscribe delivers the channels' messages over a connection of its own, which is not replaced when it is lost.
func (s *Shard) Subscribe(ctx context.Context, channels []string,
	onReady func(ping func(context.Context) error), onMessage func(channel, payload string)) error {
	if len(channels) == 0 {
		return errors.New("redigo: Subscribe: no channel")
	}
	life, lost := context.WithCancel(ctx)
	defer lost()
	conn, err := s.pool.DialContext(life)
	if err != nil {
		return gone(ctx, err)
	}
	defer context.AfterFunc(life, func() { conn.Close() })() // ends Receive
	defer conn.Close()

	p := &pings{conn: redis.PubSubConn{Conn: conn}, life: life}
	err = p.conn.Subscribe(redis.Args{}.AddFlat(channels)...)
	for confirmed := 0; err == nil; {
		switch got := p.conn.ReceiveWithTimeout(0).(type) { // a channel may be silent for long
		case redis.Subscription:
			if confirmed++; confirmed == len(channels) {
				onReady(p.ping)
			}
		case redis.Message:
			onMessage(got.Channel, string(got.Data))
		case redis.Pong:
			p.answered()
		case error:
			err = got
		}
	}
	return gone(ctx, err)
}

// gone says why a subscription is over.
func gone(ctx context.Context, err error) error {
	var server redis.Error
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("redigo: the subscription is over: %w", ctx.Err())
	case errors.As(err, &server):
		return err
	}
	return fmt.Errorf("redigo: the subscription was lost: %w", err)
}

// pings are answered in their order.
type pings struct {
	conn redis.PubSubConn
	life context.Context

	mu      sync.Mutex
	waiting []chan struct{}
}

func (p *pings) ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("redigo: nothing was sent: %w", err)
	}
	answer := make(chan struct{})
	p.mu.Lock()
	p.waiting = append(p.waiting, answer)
	err := p.conn.Ping("")
	p.mu.Unlock()
	if err != nil {
		return gone(ctx, err)
	}
	select {
	case <-answer:
		return nil
	case <-p.life.Done():
		return errors.New("redigo: the subscription was lost")
	case <-ctx.Done():
		return fmt.Errorf("redigo: gave up waiting for the answer to PING: %w", ctx.Err())
	}
}

// answered runs where messages are delivered, so those before the answer have been.
func (p *pings) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.waiting[0])
	p.waiting = p.waiting[1:]
}
