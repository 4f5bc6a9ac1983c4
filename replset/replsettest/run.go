package replsettest

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

	"github.com/shardkit/shardkit/replset"
)

// Run checks the backend that newBackend returns against each rule, in a
// subtest with a backend of its own. newBackend may return the same backend
// every time, and may end the test with t.Skip or t.Fatal.
func Run(t *testing.T, newBackend func(t *testing.T) replset.Backend) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.Name, func(t *testing.T) {
			err := r.apply(newBackend(t), ruleTime)
			var na *NotApplicable
			switch {
			case errors.As(err, &na):
				t.Skip(na)
			case err != nil:
				t.Errorf("the rule %s: %s\nthe backend: %v", r.ID, r.Text, err)
			}
		})
	}
}

// ruleTime is how long a rule's check may take before it counts as hung. Checks
// take milliseconds, the two about cancellation 2 s at most.
const ruleTime = 30 * time.Second

// A Rule is one promise of the contract.
type Rule struct {
	ID   string // stable: "RS-001"
	Name string // "reply-shapes"
	Text string // the promise in words

	check func(*probe) error // what was seen instead, or nil
}

// Rules returns all of them, for suites that build on this one.
func Rules() []Rule { return slices.Clone(rules) }

// Check returns nil where the backend keeps the rule, a *NotApplicable where that cannot be told, and otherwise what it did
// instead. It uses keys that begin with prefix, which must hold no brace, and deletes them. A backend that hangs or panics
// does so in the caller's goroutine.
func (r Rule) Check(ctx context.Context, b replset.Backend, prefix string) error {
	p := &probe{Backend: b, prefix: prefix}
	defer p.clean(ctx)
	return r.check(p)
}

var rules []Rule

func init() {
	for _, some := range [][]Rule{
		replyRules, errorRules, binaryRules, routingRules, pipelineRules, txRules, contextRules, sliceRules, concurrencyRules, readerRules,
	} {
		rules = append(rules, some...)
	}
}

// apply runs the check in a goroutine, so that a backend which hangs or panics
// fails its rule and not the whole run.
func (r Rule) apply(b replset.Backend, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if v := recover(); v != nil {
				done <- fmt.Errorf("panicked: %v\n%s", v, debug.Stack())
			}
		}()
		done <- r.Check(ctx, b, "replsettest:"+rand.Text()[:8]+":")
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("has not returned after %v", patience)
	}
}

// NotApplicable says why a rule cannot be checked over this backend and its servers.
type NotApplicable struct{ Why string }

func (e *NotApplicable) Error() string { return e.Why }

// probe is a backend with a corner of the key space of its own.
type probe struct {
	replset.Backend
	prefix string

	mu   sync.Mutex
	used []string
}

// key returns a key of this probe. Different names lie in different slots, but
// for chance.
func (p *probe) key(name string) string { return p.owned(p.prefix + name) }

// beside returns another key in the slot of a key that has no braces.
func (p *probe) beside(key string) string { return p.owned(p.prefix + "{" + key + "}beside") }

// owned notes a key to be deleted at the end.
func (p *probe) owned(key string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used = append(p.used, key)
	return key
}

func (p *probe) clean(ctx context.Context) {
	cmds := make([][]string, len(p.used))
	for i, key := range p.used {
		cmds[i] = []string{"DEL", key}
	}
	p.Pipeline(ctx, p.used, cmds)
}

// A way is a method of the backend, used for one command.
type way struct {
	name string
	run  func(ctx context.Context, b replset.Backend, key string, cmd ...string) (any, error)
}

var ways = []way{
	{"Do", func(ctx context.Context, b replset.Backend, key string, cmd ...string) (any, error) {
		v, err := b.Do(ctx, key, cmd)
		if err == nil {
			err = hidden(v)
		}
		return v, err
	}},
	{"Pipeline", func(ctx context.Context, b replset.Backend, key string, cmd ...string) (any, error) {
		return only(b.Pipeline(ctx, []string{key}, [][]string{cmd}))
	}},
	{"Tx", func(ctx context.Context, b replset.Backend, key string, cmd ...string) (any, error) {
		list, err := b.Tx(ctx, key, [][]string{cmd})
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

// hidden finds an error that Do returned as a reply.
func hidden(v any) error {
	if err, failed := v.(error); failed {
		return fmt.Errorf("returned the error %q as a reply, with a nil error", err)
	}
	return nil
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

// steps runs the commands one after another, each routed by its first argument.
func (p *probe) steps(w way, list ...step) error {
	for _, s := range list {
		got, err := w.run(context.Background(), p.Backend, s.cmd[1], s.cmd...)
		if err != nil {
			return fmt.Errorf("%q: %w", short(s.cmd), err)
		}
		if err := same(got, s.want); err != nil {
			return fmt.Errorf("%q: %w", short(s.cmd), err)
		}
	}
	return nil
}
