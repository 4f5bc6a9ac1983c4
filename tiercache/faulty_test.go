package tiercache_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

// faulty is a shard behind a bad network: commands and notices take a random
// time, and either can be lost.
type faulty struct {
	tiercache.Shard
	delay func() time.Duration // of a command, each way
	late  func() time.Duration // of a notice, and of all behind it

	cut      atomic.Bool // commands are not answered, and do not arrive
	deaf     atomic.Bool // notices and pings are not delivered
	swallow  atomic.Bool // notices are lost, pings are not
	freeze   atomic.Pointer[gate]
	commands atomic.Int64
	answers  atomic.Pointer[error]               // to writes, in the place of the server's
	dies     atomic.Pointer[func([]string) bool] // the caller dies before this command
	done     atomic.Pointer[func()]              // called when a command was run, before it is answered
}

// gate holds back what comes until it is opened.
type gate struct{ opened chan struct{} }

func (g *gate) open() { close(g.opened) }

var errCut = errors.New("the network is cut")

func (f *faulty) Do(ctx context.Context, cmd []string) (any, error) {
	f.commands.Add(1)
	if dies := f.dies.Load(); dies != nil && (*dies)(cmd) {
		f.cut.Store(true)
	}
	if err := f.pass(ctx); err != nil {
		return nil, err
	}
	if answer := f.answers.Load(); answer != nil && cmd[0] != "MGET" {
		return nil, *answer
	}
	if g := f.freeze.Load(); g != nil {
		// The server has the command, and runs it when it thaws, whether or not the
		// caller is still there.
		type outcome struct {
			reply any
			err   error
		}
		done := make(chan outcome, 1)
		go func() {
			<-g.opened
			reply, err := f.Shard.Do(context.WithoutCancel(ctx), cmd)
			done <- outcome{reply, err}
		}()
		select {
		case out := <-done:
			return out.reply, out.err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	reply, err := f.Shard.Do(ctx, cmd)
	if done := f.done.Load(); done != nil {
		(*done)()
	}
	if passed := f.pass(ctx); passed != nil {
		return nil, passed
	}
	return reply, err
}

// Pipeline is one command after the other.
func (f *faulty) Pipeline(ctx context.Context, cmds [][]string) []any {
	replies := make([]any, len(cmds))
	for i, cmd := range cmds {
		reply, err := f.Do(ctx, cmd)
		if replies[i] = reply; err != nil {
			replies[i] = err
		}
	}
	return replies
}

// pass is the way to the server, or back.
func (f *faulty) pass(ctx context.Context) error {
	if f.cut.Load() {
		<-ctx.Done()
		return errors.Join(errCut, ctx.Err())
	}
	if f.delay == nil {
		return nil
	}
	delay := f.delay()
	if delay <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *faulty) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(channel, payload string)) error {
	return f.subscribe(ctx, onReady, onMessage, func(onReady func(func(context.Context) error), onMessage func(channel, payload string)) error {
		return f.Shard.Subscribe(ctx, channels, onReady, onMessage)
	})
}

func (f *faulty) Track(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(channel, payload string), onChange func(keys []string)) error {
	return f.subscribe(ctx, onReady, onMessage, func(onReady func(func(context.Context) error), onMessage func(channel, payload string)) error {
		return f.Shard.(tiercache.Tracker).Track(ctx, channels, prefix, onReady, onMessage, func(keys []string) {
			if !f.deaf.Load() && !f.cut.Load() {
				onChange(keys)
			}
		})
	})
}

func (f *faulty) subscribe(ctx context.Context, onReady func(func(context.Context) error), onMessage func(channel, payload string), subscribe func(func(func(context.Context) error), func(channel, payload string)) error) error {
	if f.cut.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return subscribe(func(ping func(context.Context) error) {
		onReady(func(ctx context.Context) error {
			if f.deaf.Load() || f.cut.Load() {
				<-ctx.Done()
				return ctx.Err()
			}
			return ping(ctx)
		})
	}, func(channel, payload string) {
		if f.late != nil {
			time.Sleep(f.late())
		}
		if !f.deaf.Load() && !f.cut.Load() && !f.swallow.Load() {
			onMessage(channel, payload)
		}
	})
}

// upTo gives random times below d. It may be called from many goroutines.
func upTo(seed uint64, d time.Duration) func() time.Duration {
	var mu sync.Mutex
	rnd := rand.New(rand.NewPCG(seed, 0))
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(rnd.Int64N(int64(d)))
	}
}

// seldom gives 0 but for one time in a thousand.
func seldom(seed uint64, d time.Duration) func() time.Duration {
	when, long := upTo(seed, 1000), upTo(^seed, d)
	return func() time.Duration {
		if when() > 0 {
			return 0
		}
		return long()
	}
}
