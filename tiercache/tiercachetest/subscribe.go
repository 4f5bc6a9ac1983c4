package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// subscribed runs check with a subscription to the channels, and ends that.
func (p *probe) subscribed(channels []string, check func(l *listener) error) error {
	l, err := p.listen(channels...)
	if err != nil {
		return err
	}
	return l.during(check)
}

// toOne is a rule's check with a subscription to one channel.
func toOne(check func(p *probe, channel string, l *listener) error) func(*probe) error {
	return func(p *probe) error {
		channel := p.prefix + "channel"
		return p.subscribed([]string{channel}, func(l *listener) error { return check(p, channel, l) })
	}
}

var subscribeRules = []Rule{
	{
		"TS-022", "messages-in-order",
		"onMessage is called with every message of every channel that is published after onReady, in the server's order, and with no other",
		func(p *probe) error {
			channels := []string{p.prefix + "a", p.prefix + "b", p.prefix + "c"}
			return p.subscribed(channels, func(l *listener) error { return p.allInOrder(channels, l) })
		},
	},
	{
		"TS-023", "ready-means-subscribed",
		"when onReady is called every channel is subscribed to: the next message is delivered",
		func(p *probe) error {
			for round := range 20 {
				var channels []string
				for i := range 20 {
					channels = append(channels, p.prefix+fmt.Sprint("ready", round, "-", i))
				}
				last := channels[len(channels)-1]
				err := p.subscribed(channels, func(l *listener) error {
					v, err := p.do("PUBLISH", last, "first")
					if err == nil {
						err = same(v, int64(1))
					}
					if err == nil {
						err = l.pinged()
					}
					if err == nil {
						err = l.received([]message{{last, "first"}})
					}
					return err
				})
				if err != nil {
					return fmt.Errorf("after onReady, a message to the last of %d channels: %w", len(channels), err)
				}
			}
			return nil
		},
	},
	{
		"TS-024", "ping-comes-last",
		"ping returns nil only when onMessage has returned for every message that the server sent before its answer",
		toOne(func(p *probe, channel string, l *listener) error {
			published := 0
			for round := range 100 {
				l.mu.Lock()
				l.slow = 0
				if round%10 == 0 {
					l.slow = 2 * time.Millisecond
				}
				l.mu.Unlock()
				for range 1 + round%5 {
					if err := p.publish(channel, "m"); err != nil {
						return err
					}
					published++
				}
				if err := l.pinged(); err != nil {
					return fmt.Errorf("ping: %w", err)
				}
				if got := len(l.messages()); got != published {
					return fmt.Errorf("ping returned nil when onMessage had returned for %d of %d messages", got, published)
				}
			}
			return nil
		}),
	},
	{
		"TS-025", "pings-at-once",
		"ping may be called from many goroutines, while messages come",
		toOne(func(p *probe, channel string, l *listener) error {
			const callers, rounds = 8, 25
			failed := make(chan error, callers*rounds)
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range rounds {
						if err := errors.Join(p.publish(channel, "m"), l.pinged()); err != nil {
							failed <- err
						}
					}
				})
			}
			wg.Wait()
			close(failed)
			if err := <-failed; err != nil {
				return err
			}
			if got := len(l.messages()); got != callers*rounds {
				return fmt.Errorf("onMessage was called %d times for %d messages", got, callers*rounds)
			}
			return nil
		}),
	},
	{
		"TS-026", "ping-context",
		"ping returns an error when its own context has ended, and the subscription goes on",
		toOne(func(p *probe, channel string, l *listener) error {
			ctx, cancel := context.WithCancel(p.ctx)
			cancel()
			if err := l.ping(ctx); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("ping with a cancelled context returned %v, want an error that wraps %q", err, context.Canceled)
			}
			var want []message
			err := thrice(func() error {
				// The answer cannot come while onMessage runs.
				held := make(chan struct{})
				l.mu.Lock()
				l.held = held
				l.mu.Unlock()
				want = append(want, message{channel, fmt.Sprint("m", len(want))})
				err := p.publish(channel, want[len(want)-1].payload)
				ctx, cancel := context.WithTimeout(p.ctx, 50*time.Millisecond)
				defer cancel()
				start := time.Now()
				if err == nil {
					err = l.ping(ctx)
				}
				took := time.Since(start)
				l.mu.Lock()
				l.held = nil
				l.mu.Unlock()
				close(held)
				wrong := fmt.Errorf("ping with 50ms to go returned %v after %v, want an error that wraps %q", err, took, context.DeadlineExceeded)
				switch {
				case !errors.Is(err, context.DeadlineExceeded):
					return wrong
				case took > promptly:
					return &late{wrong}
				}
				return nil
			})
			if err != nil {
				return err
			}
			want = append(want, message{channel, "n"})
			if err := errors.Join(p.publish(channel, "n"), l.pinged()); err != nil {
				return err
			}
			return l.received(want)
		}),
	},
	{
		"TS-027", "messages-hold-any-bytes",
		"channels and payloads hold any bytes, and a payload may have 1 MB",
		func(p *probe) error {
			payloads := append(awkward(), strings.Repeat("0123456789abcdef", 1<<16))
			var channels []string
			for i, name := range awkward() {
				channels = append(channels, p.prefix+fmt.Sprint(i)+name)
			}
			return p.subscribed(channels, func(l *listener) error {
				var want []message
				for i, payload := range payloads {
					m := message{channels[i%len(channels)], payload}
					want = append(want, m)
					if err := p.publish(m.channel, m.payload); err != nil {
						return err
					}
				}
				if err := l.pinged(); err != nil {
					return err
				}
				return l.received(want)
			})
		},
	},
}

func (p *probe) allInOrder(channels []string, l *listener) error {
	const n = 2000
	var want []message
	var cmds [][]string
	for i := range n {
		want = append(want, message{channels[i%3], fmt.Sprint(i)})
		cmds = append(cmds, []string{"PUBLISH", channels[i%3], fmt.Sprint(i)}, []string{"PUBLISH", p.prefix + "d", "foreign"})
	}
	p.pipeline(cmds)
	if err := l.pinged(); err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return l.received(want)
}
