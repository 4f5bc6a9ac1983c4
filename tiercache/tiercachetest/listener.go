package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// message is what onMessage was called with.
type message struct{ channel, payload string }

// listener is one Subscribe or Track, which it watches for promises that hold of each.
type listener struct {
	p     *probe
	by    string // "Subscribe"
	ping  func(context.Context) error
	stop  context.CancelFunc
	ended chan error // what Subscribe returned

	inside atomic.Int32 // of onReady and onMessage
	over   atomic.Bool  // Subscribe has returned
	broken atomic.Pointer[error]

	mu   sync.Mutex
	got  []message
	slow time.Duration // how long onMessage and onChange take
	held chan struct{} // onMessage takes until it is closed, but not for ever

	changes []string // what onChange was called with
	all     int      // how often with nil
}

// listen subscribes, and returns when the subscription is ready.
func (p *probe) listen(channels ...string) (*listener, error) {
	return p.listenBy("Subscribe", func(ctx context.Context, l *listener, onReady func(func(context.Context) error)) error {
		return p.Subscribe(ctx, channels, onReady, l.onMessage)
	})
}

func (p *probe) listenBy(method string, subscribe func(ctx context.Context, l *listener, onReady func(func(context.Context) error)) error) (*listener, error) {
	ctx, stop := context.WithCancel(p.ctx)
	l := &listener{p: p, by: method, stop: stop, ended: make(chan error, 1)}
	ready := make(chan func(context.Context) error, 1)
	go func() {
		defer stop()
		err := subscribe(ctx, l, func(ping func(context.Context) error) {
			defer l.enter("onReady")()
			select {
			case ready <- ping:
			default:
				l.fail(errors.New("onReady was called twice"))
			}
		})
		l.over.Store(true)
		if err == nil {
			err = fmt.Errorf("the call of %s returned nil", method)
			l.fail(err)
		}
		l.ended <- err
	}()
	select {
	case l.ping = <-ready:
		if l.ping == nil {
			stop()
			return nil, errors.New("onReady was given no ping")
		}
		return l, nil
	case err := <-l.ended:
		return nil, fmt.Errorf("the call of %s %w: %w", method, errEarly, err)
	case <-time.After(callTime):
		stop()
		return nil, fmt.Errorf("onReady was not called within %v", callTime)
	}
}

var errEarly = errors.New("ended before onReady")

func (l *listener) onMessage(channel, payload string) {
	defer l.enter("onMessage")()
	l.mu.Lock()
	slow, held := l.slow, l.held
	l.mu.Unlock()
	time.Sleep(slow) // a cache that is busy
	if held != nil {
		select {
		case <-held:
		case <-time.After(soon):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, message{channel, payload})
}

// enter is the beginning of one of the functions, and returns its end.
func (l *listener) enter(name string) func() {
	if l.over.Load() {
		l.fail(fmt.Errorf("%s was called after %s had returned", name, l.by))
	}
	if l.inside.Add(1) > 1 {
		l.fail(fmt.Errorf("%s was called while another call was running", name))
	}
	return func() { l.inside.Add(-1) }
}

func (l *listener) fail(err error) { l.broken.CompareAndSwap(nil, &err) }

func (l *listener) messages() []message {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]message{}, l.got...)
}

// received compares the messages that came with those that must have come.
func (l *listener) received(want []message) error {
	got := l.messages()
	for i, m := range want {
		if i == len(got) {
			return fmt.Errorf("%d of %d messages came", len(got), len(want))
		}
		if got[i] != m {
			return fmt.Errorf("message %d: got %q, want %q", i, short([]string{got[i].channel, got[i].payload}), short([]string{m.channel, m.payload}))
		}
	}
	if len(got) > len(want) {
		return fmt.Errorf("%d messages came where %d were published", len(got), len(want))
	}
	return nil
}

// pinged pings with a deadline.
func (l *listener) pinged() error {
	ctx, cancel := context.WithTimeout(l.p.ctx, callTime)
	defer cancel()
	return l.ping(ctx)
}

// during runs check, and ends the subscription.
func (l *listener) during(check func(l *listener) error) error {
	err := check(l)
	if ended := l.end(); err == nil {
		err = ended
	}
	return err
}

// end stops the subscription, and returns what was wrong with it.
func (l *listener) end() error {
	select {
	case err := <-l.ended:
		return fmt.Errorf("the call of %s returned before its context ended: %w", l.by, err)
	default:
	}
	l.stop()
	select {
	case err := <-l.ended:
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the call of %s returned %q when its context was cancelled, want an error that wraps %q", l.by, err, context.Canceled)
		}
	case <-time.After(soon):
		return fmt.Errorf("the call of %s has not returned %v after its context was cancelled", l.by, soon)
	}
	if err := l.broken.Load(); err != nil {
		return *err
	}
	return nil
}

func (p *probe) publish(channel, payload string) error {
	_, err := p.do("PUBLISH", channel, payload)
	return err
}
