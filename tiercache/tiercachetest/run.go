package tiercachetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

// Run checks the shard that newShard returns against each rule, in a subtest
// with a shard of its own. newShard may return the same shard every time, and may
// end the test with t.Skip or t.Fatal.
func Run(t *testing.T, newShard func(t *testing.T) tiercache.Shard) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.Name, func(t *testing.T) {
			err := r.apply(newShard(t), ruleTime)
			var na *NotApplicable
			switch {
			case errors.As(err, &na):
				t.Skip(na)
			case err != nil:
				t.Errorf("the rule %s: %s\nthe shard: %v", r.ID, r.Text, err)
			}
		})
	}
}

// ruleTime is how long a rule's check may take before it counts as hung. Checks
// take milliseconds, those about deadlines 2 s at most.
const ruleTime = 30 * time.Second

// callTime is the deadline of an ordinary call.
const callTime = 10 * time.Second

// A Rule is one promise of the contract.
type Rule struct {
	ID   string // stable: "TS-001"
	Name string // "reply-shapes"
	Text string // the promise in words

	check func(*probe) error // what was seen instead, or nil
}

// Rules returns all of them, for suites that build on this one.
func Rules() []Rule { return slices.Clone(rules) }

// Check returns nil where the shard keeps the rule, a *NotApplicable where that
// cannot be told, and otherwise what it did instead. It uses keys and channels
// that begin with prefix, and deletes the keys. A shard that hangs or panics does
// so in the caller's goroutine.
func (r Rule) Check(ctx context.Context, s tiercache.Shard, prefix string) error {
	ctx, cancel := context.WithTimeout(ctx, ruleTime)
	defer cancel()
	p := &probe{Shard: s, ctx: ctx, prefix: prefix}
	defer p.clean()
	return r.check(p)
}

var rules = slices.Concat(replyRules, errorRules, binaryRules, pipelineRules, txRules, contextRules, sliceRules, concurrencyRules, subscribeRules, lossRules, trackRules, dedicateRules)

// apply runs the check in a goroutine, so that a shard which hangs or panics
// fails its rule and not the whole run.
func (r Rule) apply(s tiercache.Shard, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- fmt.Errorf("panicked: %v\n%s", v, debug.Stack())
			}
		}()
		done <- r.Check(ctx, s, "tiercachetest:"+rand.Text()[:8]+":")
	}()
	select {
	case err := <-done:
		return err
	case <-time.After(patience + time.Second): // a good shard returns when ctx ends
		return fmt.Errorf("has not returned after %v", patience)
	}
}

// NotApplicable says why a rule cannot be checked over this shard and its server.
type NotApplicable struct{ Why string }

func (e *NotApplicable) Error() string { return e.Why }

// probe is a shard with a corner of the key space of its own.
type probe struct {
	tiercache.Shard
	ctx    context.Context
	prefix string

	mu   sync.Mutex
	used []string
}

// key returns a key of this probe, which is deleted at the end.
func (p *probe) key(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = append(p.used, p.prefix+name)
	return p.prefix + name
}

func (p *probe) clean() {
	if len(p.used) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), callTime)
		defer cancel()
		_, _ = p.Do(ctx, append([]string{"DEL"}, p.used...))
	}
}

// known is a *NotApplicable if the server refuses the command.
func (p *probe) known(cmd ...string) error {
	_, err := p.do(cmd...)
	if err != nil && code(err) != "" {
		return &NotApplicable{fmt.Sprintf("%s is not to be had here: %v", cmd[0], err)}
	}
	return err
}

// do runs one command with a deadline.
func (p *probe) do(cmd ...string) (any, error) { return ways[0].run(p, cmd...) }

// A way is a method of the shard, used for one command.
type way struct {
	name string
	call func(ctx context.Context, s tiercache.Shard, cmd []string) (any, error)
}

// run calls the method with a deadline, as a cache does.
func (w way) run(p *probe, cmd ...string) (any, error) {
	ctx, cancel := context.WithTimeout(p.ctx, callTime)
	defer cancel()
	return w.call(ctx, p.Shard, cmd)
}

var ways = []way{
	{"Do", func(ctx context.Context, s tiercache.Shard, cmd []string) (any, error) {
		v, err := s.Do(ctx, cmd)
		if hidden, failed := v.(error); failed && err == nil {
			err = fmt.Errorf("returned the error %q as a reply, with a nil error", hidden)
		}
		return v, err
	}},
	{"Pipeline", func(ctx context.Context, s tiercache.Shard, cmd []string) (any, error) {
		return only(s.Pipeline(ctx, [][]string{cmd}))
	}},
	{"Tx", func(ctx context.Context, s tiercache.Shard, cmd []string) (any, error) {
		list, err := s.Tx(ctx, [][]string{cmd})
		if err != nil {
			return nil, err
		}
		return only(list)
	}},
}

func only(list []any) (any, error) {
	if len(list) != 1 {
		return nil, fmt.Errorf("%d elements for one command", len(list))
	}
	if err, failed := list[0].(error); failed {
		return nil, err
	}
	return list[0], nil
}

// eachWay runs check with every method.
func eachWay(check func(p *probe, w way) error) func(*probe) error {
	return func(p *probe) error {
		for _, w := range ways {
			if err := check(p, w); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
		return nil
	}
}

// A step is a command with the reply it must have.
type step struct {
	cmd  []string
	want any
}

// steps runs the commands one after another.
func (p *probe) steps(w way, list ...step) error {
	for _, s := range list {
		got, err := w.run(p, s.cmd...)
		if err == nil {
			err = same(got, s.want)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", short(s.cmd), err)
		}
	}
	return nil
}
