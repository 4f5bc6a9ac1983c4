package shard

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// counter is a subscription to one channel, whose messages are numbers from 0 on.
type counter struct {
	t     *testing.T
	ping  func(context.Context) error
	stop  context.CancelFunc
	ended chan error

	mu   sync.Mutex
	next int // the number that comes next
}

// count subscribes. each, if not nil, is called with every message.
func count(t *testing.T, s tiercache.Shard, channel string, each func()) *counter {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &counter{t: t, stop: stop, ended: make(chan error, 1)}
	ready := make(chan struct{})
	go func() {
		c.ended <- s.Subscribe(ctx, []string{channel}, func(ping func(context.Context) error) {
			c.ping = ping
			close(ready)
		}, func(_, payload string) {
			if each != nil {
				each()
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if got, _ := strconv.Atoi(payload); got != c.next {
				c.t.Errorf("message %d came where %d was next, and the subscription stands", got, c.next)
				c.next = got
			}
			c.next++
		})
	}()
	t.Cleanup(func() {
		stop()
		<-c.ended
	})
	select {
	case <-ready:
	case err := <-c.ended:
		c.ended <- err
		t.Fatal(err)
	case <-time.After(time.Minute):
		t.Fatal("not ready after a minute")
	}
	return c
}

func (c *counter) seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next
}

// wait is for the end of the subscription, which is not for its context's sake.
func (c *counter) wait(d time.Duration) {
	c.t.Helper()
	select {
	case err := <-c.ended:
		c.ended <- err
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			c.t.Errorf("the subscription ended with %q", err)
		}
	case <-time.After(d):
		c.t.Errorf("the subscription stands %v after its loss", d)
	}
}

// publish sends numbers, a hundred in a round trip, beside the shard.
func publish(t *testing.T, n *harness.Node, channel string, from, to int) {
	t.Helper()
	for from < to {
		var cmds [][]string
		for ; from < to && len(cmds) < 100; from++ {
			cmds = append(cmds, []string{"PUBLISH", channel, fmt.Sprint(from)})
		}
		if _, err := n.Pipeline(soon(t), cmds...); err != nil {
			t.Fatal(err)
		}
	}
}

// At 10,000 messages a second none is lost, and none comes out of order.
func TestManyMessages(t *testing.T) {
	n := server(t, harness.Options{})
	eachClient(t, n.Addr(), func(t *testing.T, s tiercache.Shard) {
		const total = 10000
		c := count(t, s, t.Name(), nil)
		start := time.Now()
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for from := 0; from < total; from += 100 {
			publish(t, n, t.Name(), from, from+100)
			<-tick.C
		}
		took := time.Since(start)
		if err := c.ping(soon(t)); err != nil {
			t.Fatal(err)
		}
		if c.seen() != total {
			t.Errorf("%d of %d messages came", c.seen(), total)
		}
		t.Logf("%d messages in %v", total, took.Round(time.Millisecond))
	})
}

// A subscriber that is too slow is dropped by the server, and says so: what it
// has seen until then is without a gap.
func TestSlowSubscriber(t *testing.T) {
	n := server(t, harness.Options{Args: []string{"--client-output-buffer-limit", "pubsub 1mb 1mb 1"}})
	eachClient(t, n.Addr(), func(t *testing.T, s tiercache.Shard) {
		tooSlow := make(chan struct{})
		c := count(t, s, t.Name(), func() { <-tooSlow })
		padding := fmt.Sprintf("%01000d", 0) // in front of the number
		dropped := false
		for from := 0; !dropped && from < 200000; from += 100 {
			var cmds [][]string
			for i := range 100 {
				cmds = append(cmds, []string{"PUBLISH", t.Name(), padding + fmt.Sprint(from+i)})
			}
			replies, err := n.Pipeline(soon(t), cmds...)
			if err != nil {
				t.Fatal(err)
			}
			dropped = replies[len(replies)-1] == int64(0)
		}
		close(tooSlow)
		if !dropped {
			t.Fatal("the server dropped nobody")
		}
		c.wait(20 * time.Second) // it is given what came until then
		t.Logf("dropped after %d messages", c.seen())
	})
}

// A subscription whose connection is cut ends, and does not come back by itself.
func TestCutSubscription(t *testing.T) {
	n := server(t, harness.Options{Proxied: true})
	eachClient(t, n.Addr(), func(t *testing.T, s tiercache.Shard) {
		c := count(t, s, t.Name(), nil)
		publish(t, n, t.Name(), 0, 10)
		if err := c.ping(soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(n.Cut(), n.Mend()); err != nil {
			t.Fatal(err)
		}
		c.wait(late)
		publish(t, n, t.Name(), 100, 110)
		if err := c.ping(soon(t)); err == nil {
			t.Error("ping of a lost subscription returned nil")
		}
		if c.seen() != 10 {
			t.Errorf("messages came after the loss: %d", c.seen())
		}
		again := count(t, s, t.Name(), nil)
		publish(t, n, t.Name(), 0, 10)
		if err := again.ping(soon(t)); err != nil || again.seen() != 10 {
			t.Errorf("the next subscription: %d of 10 messages, %v", again.seen(), err)
		}
	})
}

// On a frozen server a ping and a new subscription end with their contexts; the
// subscription stands, and misses nothing once the server goes on.
func TestFrozenSubscription(t *testing.T) {
	n := server(t, harness.Options{})
	eachClient(t, n.Addr(), func(t *testing.T, s tiercache.Shard) {
		c := count(t, s, t.Name(), nil)
		publish(t, n, t.Name(), 0, 10)
		freeze(t, n)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.ping(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 200*time.Millisecond+late {
				t.Errorf("ping: %v after %v", err, time.Since(start))
			}
		})
		wg.Go(func() {
			err := s.Subscribe(ctx, []string{"x"}, func(func(context.Context) error) {}, func(string, string) {})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 200*time.Millisecond+late {
				t.Errorf("Subscribe: %v after %v", err, time.Since(start))
			}
		})
		wg.Wait()
		if err := n.Thaw(); err != nil {
			t.Fatal(err)
		}
		publish(t, n, t.Name(), 10, 20)
		if err := c.ping(soon(t)); err != nil {
			t.Fatal(err)
		}
		if c.seen() != 20 {
			t.Errorf("%d of 20 messages came", c.seen())
		}
	})
}

// A Subscribe ends at once with its context, on a frozen server too.
func TestFrozenSubscriptionEnds(t *testing.T) {
	n := server(t, harness.Options{})
	eachClient(t, n.Addr(), func(t *testing.T, s tiercache.Shard) {
		c := count(t, s, t.Name(), nil)
		freeze(t, n)
		c.stop()
		select {
		case err := <-c.ended:
			c.ended <- err
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		case <-time.After(late):
			t.Errorf("Subscribe has not returned %v after its context ended", late)
		}
		if err := n.Thaw(); err != nil {
			t.Fatal(err)
		}
	})
}
