package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/rueidis"
)

// Subscribe delivers the channels' messages until ctx ends or the connection is
// lost. It has a dedicated client; in RESP2, rueidis opens a second connection
// for that one's subscriptions.
func (s *Shard) Subscribe(ctx context.Context, channels []string, onReady func(ping func(context.Context) error), onMessage func(channel, payload string)) error {
	return s.subscribe(ctx, channels, nil, onReady, onMessage, nil)
}

// Track is Subscribe, and delivers changes of keys, as the server broadcasts them
// (CLIENT TRACKING, BCAST). It needs RESP3.
func (s *Shard) Track(ctx context.Context, channels []string, prefix string, onReady func(ping func(context.Context) error), onMessage func(channel, payload string), onChange func(keys []string)) error {
	// rueidis may have begun to track in a way that cannot be changed, but ended.
	track := []rueidis.Completed{s.builder.Arbitrary("CLIENT", "TRACKING", "OFF").Build(), s.builder.Arbitrary("CLIENT", "TRACKING", "ON", "BCAST").Args(prefixArgs(prefix)...).Build()}
	return s.subscribe(ctx, channels, track, onReady, onMessage, onChange)
}

func prefixArgs(prefix string) []string {
	if prefix == "" {
		return nil
	}
	return []string{"PREFIX", prefix}
}

func (s *Shard) subscribe(ctx context.Context, channels []string, track []rueidis.Completed, onReady func(ping func(context.Context) error), onMessage func(channel, payload string), onChange func(keys []string)) error {
	if len(channels) == 0 {
		return errors.New("rueidisbackend: Subscribe: no channel")
	}
	if err := ctx.Err(); err != nil {
		return notSent(err)
	}
	heard := &listener{onMessage: onMessage, onChange: onChange}
	conn, err := s.listen(ctx, heard, track != nil)
	if err != nil {
		return err
	}
	defer func() {
		heard.end()
		go conn.Close() // which waits for a silent server, for a second
	}()

	if track != nil {
		// In RESP2 the server would take the command, and tell nothing.
		hello, err := conn.Do(ctx, s.builder.Arbitrary("HELLO").Build()).AsMap()
		if err != nil {
			return s.subscriptionLost(ctx, err)
		}
		proto := hello["proto"]
		if version, _ := proto.AsInt64(); version < 3 {
			return errRESP2
		}
	}
	begin := slices.Clone(track)
	for _, channel := range channels {
		begin = append(begin, s.builder.Subscribe().Channel(channel).Build())
	}
	for _, r := range conn.DoMulti(ctx, begin...) {
		if err := r.NonRedisError(); err != nil {
			return s.subscriptionLost(ctx, err)
		}
		if err := r.Error(); err != nil {
			m, _ := r.ToMessage()
			err, _ := plain(&m).(error)
			return err
		}
	}
	select {
	case err := <-conn.lost: // and the subscriptions may be on another connection, without hooks
		return s.subscriptionLost(ctx, err)
	default:
	}

	// In RESP2 a PING does not go to the connection that has the subscriptions.
	// Subscribing again does, and is answered there behind all messages before.
	first := channels[0]
	ping := func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			return notSent(err)
		}
		if err := conn.Do(ctx, s.builder.Subscribe().Channel(first).Build()).Error(); err != nil {
			return failure(ctx, s.addr, err)
		}
		if !heard.tell(func() {}) {
			return fmt.Errorf("rueidisbackend: %s: the subscription is over", s.addr)
		}
		return nil
	}
	heard.tell(func() { onReady(ping) })

	select {
	case err := <-conn.lost:
		return s.subscriptionLost(ctx, err)
	case <-ctx.Done():
		return s.subscriptionLost(ctx, nil)
	}
}

// listener calls the caller's functions, one at a time, until it has ended.
type listener struct {
	onMessage func(channel, payload string)
	onChange  func(keys []string)

	mu   sync.Mutex
	over bool
}

// tell reports whether it called f. When it returns, so has each call before.
func (l *listener) tell(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over {
		f()
	}
	return !l.over
}

func (l *listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

// connection is one that only a subscription uses.
type connection struct {
	rueidis.DedicatedClient
	lost <-chan error
}

func (s *Shard) listen(ctx context.Context, l *listener, track bool) (connection, error) {
	connected := make(chan connection)
	go func() { // rueidis dials without looking at ctx
		client, _ := s.client.Dedicate()
		lost := client.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) {
			l.tell(func() { l.onMessage(m.Channel, m.Message) })
		}})
		if track {
			lost = client.SetOnInvalidations(func(changed []rueidis.RedisMessage) {
				l.tell(func() { l.onChange(keysOf(changed)) })
			})
		}
		select {
		case connected <- connection{client, lost}:
		case <-ctx.Done():
			client.Close()
		}
	}()
	select {
	case conn := <-connected:
		return conn, nil
	case <-ctx.Done():
		return connection{}, notSent(ctx.Err())
	}
}

var errRESP2 = errors.New("rueidisbackend: Track: the connection speaks RESP2, in which a server does not tell of changes: leave AlwaysRESP2 out of the client's options")

// keysOf are the keys of an invalidation, nil for all.
func keysOf(changed []rueidis.RedisMessage) []string {
	if changed == nil {
		return nil
	}
	keys := make([]string, 0, len(changed))
	for i := range changed {
		if key, err := changed[i].ToString(); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

func (s *Shard) subscriptionLost(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("rueidisbackend: %s: the subscription is over: %w", s.addr, ended)
	}
	if err == nil {
		err = rueidis.ErrClosing
	}
	return fmt.Errorf("rueidisbackend: %s: the subscription was lost: %w", s.addr, err)
}
