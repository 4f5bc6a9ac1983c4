package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
)

var lossRules = []Rule{
	{
		"TS-028", "subscribe-until-ctx-ends",
		"Subscribe returns promptly when its context ends, with an error for which errors.Is(err, ctx.Err()) holds; at once, without onReady, where it has ended before",
		func(p *probe) error {
			ended, cancel := context.WithCancel(p.ctx)
			cancel()
			ready := false
			err := p.Subscribe(ended, []string{p.prefix + "ended"}, func(func(context.Context) error) { ready = true }, func(string, string) {})
			if ready || !errors.Is(err, context.Canceled) {
				return fmt.Errorf("with a cancelled context it called onReady: %v, and returned %v, want an error that wraps %q", ready, err, context.Canceled)
			}
			// listener.end sees to the cancellation of one that stands.
			for range 5 {
				if err := p.subscribed([]string{p.prefix + "until"}, func(*listener) error { return nil }); err != nil {
					return err
				}
			}
			return thrice(func() error {
				ctx, cancel := context.WithTimeout(p.ctx, 100*time.Millisecond)
				defer cancel()
				start := time.Now()
				err := p.Subscribe(ctx, []string{p.prefix + "deadline"}, func(func(context.Context) error) {}, func(string, string) {})
				took := time.Since(start)
				wrong := fmt.Errorf("with 100ms to go it returned %v after %v, want an error that wraps %q", err, took, context.DeadlineExceeded)
				switch {
				case !errors.Is(err, context.DeadlineExceeded):
					return wrong
				case took > promptly:
					return &late{wrong}
				}
				return nil
			})
		},
	},
	{
		"TS-029", "nothing-after-return",
		"after Subscribe has returned neither function is called, and ping returns an error",
		func(p *probe) error {
			channel := p.prefix + "after"
			for range 10 {
				l, err := p.listen(channel)
				if err != nil {
					return err
				}
				var cmds [][]string
				for range 200 {
					cmds = append(cmds, []string{"PUBLISH", channel, "m"})
				}
				p.pipeline(cmds[:100])
				if err := l.end(); err != nil {
					return err
				}
				p.pipeline(cmds)
				if err := l.pinged(); err == nil {
					return errors.New("ping returned nil after Subscribe had returned")
				}
				if broken := l.broken.Load(); broken != nil {
					return *broken
				}
			}
			return nil
		},
	},
	{
		"TS-030", "loss-ends-it",
		"when its connection is lost Subscribe returns an error that is not ctx's, and subscribes no more by itself; other subscriptions stand",
		func(p *probe) error {
			if err := p.known("CLIENT", "LIST", "TYPE", "pubsub"); err != nil {
				return err
			}
			channel := p.prefix + "lost"
			return p.subscribed([]string{channel}, func(other *listener) error {
				before, err := p.subscribers()
				if err != nil {
					return err
				}
				l, err := p.listen(channel)
				if err != nil {
					return err
				}
				defer l.stop()
				if err := p.killed(before, l); err != nil {
					return err
				}
				v, err := p.do("PUBLISH", channel, "m")
				if err == nil {
					err = same(v, int64(1))
				}
				if err != nil {
					return fmt.Errorf("PUBLISH after the loss of one subscription of two: %w", err)
				}
				if err := other.pinged(); err != nil {
					return fmt.Errorf("the other subscription: %w", err)
				}
				return other.received([]message{{channel, "m"}})
			})
		},
	},
	{
		"TS-031", "no-channel-is-an-error",
		"Subscribe to no channel returns an error",
		func(p *probe) error {
			ctx, cancel := context.WithTimeout(p.ctx, soon)
			defer cancel()
			err := p.Subscribe(ctx, nil, func(func(context.Context) error) {}, func(string, string) {})
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("got %v", err)
			}
			return nil
		},
	},
}

// killed closes the connection of l, whose subscribers before it are given, and waits
// for its end.
func (p *probe) killed(before map[string]bool, l *listener) error {
	after, err := p.subscribers()
	if err != nil {
		return err
	}
	maps.DeleteFunc(after, func(id string, _ bool) bool { return before[id] })
	if len(after) != 1 {
		return &NotApplicable{"other clients subscribe here at the same time"}
	}
	for id := range after {
		if _, err := p.do("CLIENT", "KILL", "ID", id); err != nil {
			return err
		}
	}
	select {
	case err := <-l.ended:
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the error is %q, which says that a context ended", err)
		}
		return nil
	case <-time.After(soon):
		return fmt.Errorf("the call of %s has not returned %v after its connection was closed", l.by, soon)
	}
}

// subscribers returns the ids of the connections that are subscribed.
func (p *probe) subscribers() (map[string]bool, error) {
	v, err := p.do("CLIENT", "LIST", "TYPE", "pubsub")
	if err != nil {
		return nil, err
	}
	text, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("CLIENT LIST: got %s, want a string", show(v))
	}
	ids := map[string]bool{}
	for line := range strings.Lines(text) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		ids[id] = true
	}
	return ids, nil
}
