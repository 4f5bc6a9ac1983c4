package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

var (
	errRestarted = errors.New("memory: the subscription was lost: the server was restarted")
	errTooSlow   = errors.New("memory: the subscription was lost: too many messages are waiting for onMessage")
)

// bufferLimit is how much may wait for a subscriber, in bytes: a server's hard
// limit by default.
const bufferLimit = 32 << 20

// subscriber is one Subscribe. Its fields are guarded by Shard.mu.
type subscriber struct {
	channels []string
	onChange func(keys []string) // nil, if it does not track
	prefix   string
	waiting  []delivery
	size     int // of what waits, and of what is being delivered, bytes
	lost     error
	wake     chan struct{} // one place: there is something new
}

// delivery is a message, a change of a key, or the answer to a ping.
type delivery struct {
	channel, payload string
	call             func()
}

func (d delivery) size() int { return len(d.channel) + len(d.payload) + 1 }

// Subscribe delivers what is published until ctx ends or Restart is called.
func (s *Shard) Subscribe(ctx context.Context, channels []string, onReady func(ping func(context.Context) error), onMessage func(channel, payload string)) error {
	return s.subscribe(ctx, &subscriber{channels: slices.Clone(channels)}, onReady, onMessage)
}

// Track is Subscribe, and delivers changes of keys. A key whose life is over
// changes when it is next looked at.
func (s *Shard) Track(ctx context.Context, channels []string, prefix string, onReady func(ping func(context.Context) error), onMessage func(channel, payload string), onChange func(keys []string)) error {
	return s.subscribe(ctx, &subscriber{channels: slices.Clone(channels), onChange: onChange, prefix: prefix}, onReady, onMessage)
}

func (s *Shard) subscribe(ctx context.Context, sub *subscriber, onReady func(ping func(context.Context) error), onMessage func(channel, payload string)) error {
	if len(sub.channels) == 0 {
		return errors.New("memory: Subscribe: no channel")
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: nothing was sent: %w", err)
	}
	sub.wake = make(chan struct{}, 1)
	s.mu.Lock()
	s.subscribers[sub] = struct{}{}
	s.mu.Unlock()
	over := make(chan struct{})
	defer func() {
		s.mu.Lock()
		delete(s.subscribers, sub)
		s.mu.Unlock()
		close(over)
	}()

	onReady(func(ctx context.Context) error { return s.ping(ctx, sub, over) })
	for {
		select {
		case <-sub.wake:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("memory: the subscription is over: %w", err)
		}
		s.mu.Lock()
		list, lost := sub.waiting, sub.lost
		sub.waiting = nil
		s.mu.Unlock()
		if lost != nil { // what was on its way is lost with the connection
			return lost
		}
		for _, d := range list {
			if ctx.Err() != nil {
				break
			}
			if d.call != nil {
				d.call()
			} else {
				onMessage(d.channel, d.payload)
			}
			s.mu.Lock()
			sub.size -= d.size()
			s.mu.Unlock()
		}
	}
}

func (s *Shard) ping(ctx context.Context, sub *subscriber, over <-chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: nothing was sent: %w", err)
	}
	answered := make(chan struct{})
	s.mu.Lock()
	s.deliver(sub, delivery{call: sync.OnceFunc(func() { close(answered) })})
	lost := sub.lost
	s.mu.Unlock()
	if lost != nil {
		return lost
	}
	select {
	case <-answered:
		return nil
	case <-over:
		return errors.New("memory: the subscription is over")
	case <-ctx.Done():
		return fmt.Errorf("memory: gave up waiting for the answer: %w", ctx.Err())
	}
}

func publish(s *Shard, cmd []string) any { return s.publish(cmd[1], cmd[2]) }

// publish tells the subscribers, and returns how many there are; s.mu is held.
func (s *Shard) publish(channel, payload string) int64 {
	var n int64
	for sub := range s.subscribers {
		if slices.Contains(sub.channels, channel) {
			n++
			s.deliver(sub, delivery{channel: channel, payload: payload})
		}
	}
	return n
}

// changed tells who tracks the key; s.mu is held.
func (s *Shard) changed(key string) {
	for sub := range s.subscribers {
		if sub.onChange != nil && strings.HasPrefix(key, sub.prefix) {
			s.deliver(sub, delivery{payload: key, call: func() { sub.onChange([]string{key}) }})
		}
	}
}

func (s *Shard) changedAll() {
	for sub := range s.subscribers {
		if sub.onChange != nil {
			s.deliver(sub, delivery{call: func() { sub.onChange(nil) }})
		}
	}
}

func (s *Shard) deliver(sub *subscriber, d delivery) {
	if sub.lost != nil {
		return
	}
	sub.waiting = append(sub.waiting, d)
	if sub.size += d.size(); sub.size > bufferLimit {
		s.drop(sub, errTooSlow)
	}
	select {
	case sub.wake <- struct{}{}:
	default:
	}
}

// drop ends a subscription.
func (s *Shard) drop(sub *subscriber, why error) {
	sub.lost, sub.waiting = why, nil
	delete(s.subscribers, sub)
	select {
	case sub.wake <- struct{}{}:
	default:
	}
}
