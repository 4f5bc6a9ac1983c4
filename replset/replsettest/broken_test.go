package replsettest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/replsettest/broken"
)

// TestGoodBackendPasses: no rule fails, and none goes unchecked.
func TestGoodBackendPasses(t *testing.T) {
	for _, r := range rules {
		if err := r.apply(broken.Whole(), ruleTime); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
}

// TestBrokenBackendsAreCaught: each way to break the contract fails the rule
// that forbids it, and every rule forbids something.
func TestBrokenBackendsAreCaught(t *testing.T) {
	unproved := map[string]bool{}
	for _, r := range rules {
		unproved[r.Name] = true
	}
	seen := make([]error, len(broken.Defects))
	var checks sync.WaitGroup
	for i, d := range broken.Defects {
		delete(unproved, d.Rule)
		rule := slices.IndexFunc(rules, func(r Rule) bool { return r.Name == d.Rule })
		if rule < 0 {
			t.Fatalf("there is no rule %q", d.Rule)
		}
		checks.Go(func() { seen[i] = rules[rule].apply(d.New(), ruleTime) }) // at once: many of them wait
	}
	checks.Wait()
	for i, d := range broken.Defects {
		t.Run(d.Rule+"/"+strings.ReplaceAll(d.Name, " ", "-"), func(t *testing.T) {
			var na *NotApplicable
			if err := seen[i]; err == nil || errors.As(err, &na) {
				t.Fatalf("a backend that %s passes (%v)", d.Name, err)
			}
			t.Log(seen[i])
		})
	}
	for name := range unproved {
		t.Errorf("no broken backend proves that rule %q can fail", name)
	}
}

// hanging never returns from Do.
type hanging struct {
	replset.Backend
	released chan struct{}
}

func (h hanging) Do(context.Context, string, []string) (any, error) {
	<-h.released
	return nil, nil
}

func TestHangingBackendIsCaught(t *testing.T) {
	h := hanging{broken.Whole(), make(chan struct{})}
	defer close(h.released)
	if err := replyRules[0].apply(h, 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "has not returned") {
		t.Errorf("a backend that hangs: %v", err)
	}
}

// stalling is a good backend on a machine that stops its caller once, for longer than promptly, in a call whose time matters.
type stalling struct {
	replset.Backend
	stalled atomic.Bool
}

func (s *stalling) stall(ctx context.Context) {
	if end, ok := ctx.Deadline(); (ctx.Err() != nil || ok && time.Until(end) < promptly) && s.stalled.CompareAndSwap(false, true) {
		time.Sleep(promptly + 200*time.Millisecond)
	}
}

func (s *stalling) Do(ctx context.Context, key string, cmd []string) (any, error) {
	defer s.stall(ctx)
	return s.Backend.Do(ctx, key, cmd)
}

func (s *stalling) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	defer s.stall(ctx)
	return s.Backend.Pipeline(ctx, keys, cmds)
}

func (s *stalling) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	defer s.stall(ctx)
	return s.Backend.Tx(ctx, key, cmds)
}

func TestStallIsForgiven(t *testing.T) {
	for _, r := range contextRules {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			s := &stalling{Backend: broken.Whole()}
			if err := r.apply(s, ruleTime); err != nil {
				t.Error(err)
			}
			if !s.stalled.Load() {
				t.Error("no call was stalled")
			}
		})
	}
}
