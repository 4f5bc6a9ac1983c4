package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Subscribe delivers the channels' messages until ctx ends or the connection is
// lost.
//
// go-redis reconnects a subscription behind its user's back, in more places than
// can be watched. So each one has a client of its own, whose dialer dials once.
// It has the options of the caller's client, without its hooks.
func (s *Shard) Subscribe(ctx context.Context, channels []string, onReady func(ping func(context.Context) error), onMessage func(channel, payload string)) error {
	return s.subscribe(ctx, channels, nil, onReady, onMessage)
}

func (s *Shard) subscribe(ctx context.Context, channels []string, change func(*redis.Options), onReady func(ping func(context.Context) error), onMessage func(channel, payload string)) error {
	if len(channels) == 0 {
		return errors.New("goredis: Subscribe: no channel")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("goredis: nothing was sent: %w", err)
	}
	life, end := context.WithCancelCause(ctx)
	defer end(errSubscriptionLost)
	client := dialingOnce(life, s.client.Options(), change)
	defer client.Close()
	pubsub := client.Subscribe(life)
	defer pubsub.Close()

	pings := pings{pubsub: pubsub, life: life, waiting: map[string]chan struct{}{}}
	err := pubsub.Subscribe(life, channels...)
	for confirmed := 0; err == nil; {
		var got any
		if got, err = pubsub.Receive(life); err != nil {
			break
		}
		switch got := got.(type) {
		case *redis.Subscription:
			switch confirmed++; {
			case got.Kind != "subscribe":
				err = fmt.Errorf("the server ended the subscription to %q", got.Channel)
			case confirmed == len(channels):
				onReady(pings.ping)
			}
		case *redis.Message:
			onMessage(got.Channel, got.Payload)
		case *redis.Pong:
			pings.answered(got.Payload)
		}
	}
	var server redis.Error
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("goredis: the subscription is over: %w", ctx.Err())
	case errors.As(err, &server):
		return err
	}
	return fmt.Errorf("goredis: the subscription was lost: %w", failure(ctx, err))
}

var errSubscriptionLost = errors.New("goredis: the subscription was lost")

// dialingOnce is a client for one connection, which is closed when ctx ends and
// never replaced. change may be nil.
func dialingOnce(ctx context.Context, theirs *redis.Options, change func(*redis.Options)) *redis.Client {
	o := *theirs
	var mu sync.Mutex
	dialled := false
	o.Dialer = func(dialCtx context.Context, network, addr string) (net.Conn, error) {
		mu.Lock()
		again := dialled
		dialled = true
		mu.Unlock()
		if again {
			return nil, errSubscriptionLost
		}
		conn, err := theirs.Dialer(dialCtx, network, addr)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
	o.MaxRetries = -1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	o.ClientSideCacheConfig, o.ClientSideCache = nil, nil
	o.MinIdleConns, o.PipelinePoolSize = 0, -1
	o.Limiter = nil
	if change != nil {
		change(&o)
	}
	return redis.NewClient(&o)
}

// pings are those whose answer is not there yet.
type pings struct {
	pubsub *redis.PubSub
	life   context.Context

	mu      sync.Mutex
	sent    int
	waiting map[string]chan struct{}
}

func (p *pings) ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("goredis: nothing was sent: %w", err)
	}
	answer := make(chan struct{})
	p.mu.Lock()
	p.sent++
	token := strconv.Itoa(p.sent)
	p.waiting[token] = answer
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.waiting, token)
		p.mu.Unlock()
	}()
	if err := p.pubsub.Ping(ctx, token); err != nil {
		return failure(ctx, err)
	}
	select {
	case <-answer:
		return nil
	case <-p.life.Done():
		return errSubscriptionLost
	case <-ctx.Done():
		return fmt.Errorf("goredis: gave up waiting for the answer to PING: %w", ctx.Err())
	}
}

// answered runs on the goroutine that delivers messages, so those that came
// before the answer have been delivered.
func (p *pings) answered(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answer, ok := p.waiting[token]; ok {
		close(answer)
		delete(p.waiting, token)
	}
}
