package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

// track is listen, by Track of the keys that begin with the prefix.
func (p *probe) track(channel, prefix string) (*listener, error) {
	tracker, ok := p.Shard.(tiercache.Tracker)
	if !ok {
		return nil, &NotApplicable{"this shard does not tell of changes (tiercache.Tracker)"}
	}
	l, err := p.listenBy("Track", func(ctx context.Context, l *listener, onReady func(func(context.Context) error)) error {
		return tracker.Track(ctx, []string{channel}, prefix, onReady, l.onMessage, l.onChange)
	})
	if errors.Is(err, errEarly) { // as a server that cannot has it
		err = &NotApplicable{err.Error()}
	}
	return l, err
}

// tracked runs check with a Track, and ends it.
func (p *probe) tracked(channel, prefix string, check func(l *listener) error) error {
	l, err := p.track(channel, prefix)
	if err != nil {
		return err
	}
	return l.during(check)
}

func (l *listener) onChange(keys []string) {
	defer l.enter("onChange")()
	l.mu.Lock()
	slow := l.slow
	l.mu.Unlock()
	time.Sleep(slow)
	l.mu.Lock()
	defer l.mu.Unlock()
	if keys == nil {
		l.all++
	}
	l.changes = append(l.changes, keys...)
}

// took returns the changes that came since it was last called.
func (l *listener) took() (keys []string, all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys, all = l.changes, l.all
	l.changes, l.all = nil, 0
	return keys, all
}

// tellsOfExpiry lets key expire, and looks on that onChange is told. What was
// told while the key was there may be of the command that gave it its life, so
// only what came later counts; a life that a slow machine outlasts is doubled.
func (p *probe) tellsOfExpiry(l *listener, key string) error {
	for life := 2 * time.Millisecond; life < 2*promptly; life *= 2 {
		if _, err := p.do("SET", key, "1", "PX", fmt.Sprint(life.Milliseconds())); err != nil {
			return err
		}
		if err := l.pinged(); err != nil {
			return fmt.Errorf("ping: %w", err)
		}
		l.took()
		there, err := p.do("EXISTS", key)
		if err != nil {
			return err
		}
		if there == int64(0) {
			continue
		}
		// The server finds out that a life is over when somebody asks, or by itself.
		for deadline := time.Now().Add(life + promptly); there != int64(0); time.Sleep(time.Millisecond) {
			asked := time.Now()
			if there, err = p.do("EXISTS", key); err != nil {
				return err
			}
			if there != int64(0) && asked.After(deadline) {
				return fmt.Errorf("a key with a life of %v is there %v after it", life, promptly)
			}
		}
		if err := l.pinged(); err != nil {
			return fmt.Errorf("ping: %w", err)
		}
		if got, all := l.took(); all == 0 && !slices.Contains(got, key) {
			return errors.New("a key has expired, and onChange did not tell")
		}
		return nil
	}
	return fmt.Errorf("no key was seen to expire: a command and a ping took longer than a life of %v each time", promptly)
}

var trackRules = []Rule{
	{
		"TS-032", "track-tells-changes",
		"Track, where a shard has it, calls onChange with each key that begins with the prefix and is set, is deleted or expires, whoever does it, and with no other; nil means all keys",
		func(p *probe) error {
			prefix := p.prefix + "mine:"
			return p.tracked(p.prefix+"channel", prefix, func(l *listener) error {
				a, b, foreign := p.key("mine:a"), p.key("mine:b\x00\xff"), p.key("not mine:a")
				for _, s := range []struct {
					want []string
					cmd  []string
				}{
					{[]string{a}, []string{"SET", a, "1"}},
					{[]string{a}, []string{"SET", a, "1"}},
					{[]string{b}, []string{"SET", b, "1", "PX", "60000"}},
					{nil, []string{"GET", a}},
					{nil, []string{"SET", foreign, "1"}},
					{[]string{a}, []string{"DEL", a, foreign}},
					{[]string{b}, []string{"PEXPIRE", b, "60001"}},
				} {
					l.took()
					if _, err := p.do(s.cmd...); err != nil {
						return err
					}
					if err := l.pinged(); err != nil {
						return fmt.Errorf("ping: %w", err)
					}
					got, all := l.took()
					if all == 0 && !slices.Equal(unique(got), s.want) {
						return fmt.Errorf("%q: onChange told of %q, want %q", short(s.cmd), got, s.want)
					}
				}
				return p.tellsOfExpiry(l, b)
			})
		},
	},
	{
		"TS-033", "track-ping-comes-last",
		"ping of a Track returns nil only when onChange has returned for every change before the last command that had been answered, on any connection, and onMessage for every message",
		func(p *probe) error {
			channel := p.prefix + "channel"
			return p.tracked(channel, p.prefix, func(l *listener) error {
				var want []message
				for round := range 100 {
					l.mu.Lock()
					l.slow = 0
					if round%10 == 0 {
						l.slow = 2 * time.Millisecond
					}
					l.mu.Unlock()
					key := p.key(fmt.Sprint("ping", round))
					if _, err := p.do("SET", key, "1"); err != nil {
						return err
					}
					want = append(want, message{channel, key})
					if err := p.publish(channel, key); err != nil {
						return err
					}
					if err := l.pinged(); err != nil {
						return fmt.Errorf("ping: %w", err)
					}
					if got, all := l.took(); all == 0 && !slices.Contains(got, key) {
						return fmt.Errorf("ping returned nil when onChange had not returned for the change of %q", key)
					}
				}
				return l.received(want)
			})
		},
	},
	{
		"TS-034", "track-ends",
		"Track ends as Subscribe does: promptly with its context, with the reason when its connection is lost, and then it calls nothing and ping returns an error",
		func(p *probe) error {
			channel := p.prefix + "channel"
			if err := p.known("CLIENT", "LIST", "TYPE", "pubsub"); err != nil {
				return err
			}
			var last *listener
			err := p.tracked(channel, p.prefix, func(l *listener) error { last = l; return nil })
			if err != nil {
				return err
			}
			if _, err := p.do("SET", p.key("ended"), "1"); err != nil {
				return err
			}
			if err := last.pinged(); err == nil {
				return errors.New("ping returned nil after Track had returned")
			}
			if got, _ := last.took(); len(got) > 0 {
				return fmt.Errorf("onChange was called with %q after Track had returned", got)
			}
			before, err := p.subscribers()
			if err != nil {
				return err
			}
			l, err := p.track(channel, p.prefix)
			if err != nil {
				return err
			}
			defer l.stop()
			return p.killed(before, l)
		},
	},
}

func unique(keys []string) []string {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	return slices.Compact(keys)
}
