package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/tiercachetest/broken"
)

// TestGoodShardPasses: no rule fails, and none goes unchecked.
func TestGoodShardPasses(t *testing.T) {
	for _, r := range rules {
		if err := r.apply(broken.Whole(), ruleTime); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
}

func TestRulesAreNumbered(t *testing.T) {
	for i, r := range Rules() {
		if want := fmt.Sprintf("TS-%03d", i+1); r.ID != want || r.Name == "" || r.Text == "" {
			t.Errorf("rule %d is %q, %q: %q; want %s, a name and a text", i, r.ID, r.Name, r.Text, want)
		}
	}
}

// TestBrokenShardsAreCaught: each way to break the contract fails the rule that
// forbids it, and every rule forbids something.
func TestBrokenShardsAreCaught(t *testing.T) {
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
				t.Fatalf("a shard that %s passes (%v)", d.Name, err)
			}
			t.Log(seen[i])
		})
	}
	for name := range unproved {
		t.Errorf("no broken shard proves that the rule %q can fail", name)
	}
}

// hanging never returns from Do.
type hanging struct {
	tiercache.Shard
	released chan struct{}
}

func (h hanging) Do(context.Context, []string) (any, error) {
	<-h.released
	return nil, nil
}

func TestHangingShardIsCaught(t *testing.T) {
	released := make(chan struct{})
	defer close(released)
	hangs := hanging{broken.Whole(), released}
	if err := replyRules[0].apply(hangs, 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "has not returned") {
		t.Errorf("a shard that hangs: %v", err)
	}
}

// stalling is a good shard on a machine that stops its caller for longer than promptly where time matters, once in each
// sort of call.
type stalling struct {
	tiercache.Shard
	stalled sync.Map
}

func (s *stalling) once(sort string) {
	if _, again := s.stalled.LoadOrStore(sort, true); !again {
		time.Sleep(promptly + 200*time.Millisecond)
	}
}

// stall is called when a call that had ctx is over.
func (s *stalling) stall(ctx context.Context) {
	if end, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(end) < promptly {
		s.once("call")
	}
}

func (s *stalling) Do(ctx context.Context, cmd []string) (any, error) {
	defer s.stall(ctx)
	return s.Shard.Do(ctx, cmd)
}

func (s *stalling) Pipeline(ctx context.Context, cmds [][]string) []any {
	defer s.stall(ctx)
	return s.Shard.Pipeline(ctx, cmds)
}

func (s *stalling) Tx(ctx context.Context, cmds [][]string) ([]any, error) {
	defer s.stall(ctx)
	return s.Shard.Tx(ctx, cmds)
}

func (s *stalling) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
	end, _ := ctx.Deadline()
	sort := fmt.Sprintf("subscription that has ended %v, that ends soon %v", ctx.Err() != nil, time.Until(end) < promptly)
	defer func() { s.once(sort) }()
	return s.Shard.Subscribe(ctx, channels, func(ping func(context.Context) error) {
		onReady(func(ctx context.Context) error {
			err := ping(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				s.once("ping")
			}
			return err
		})
	}, onMessage)
}

func (s *stalling) Track(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(string, string), onChange func([]string)) error {
	defer s.once("track")
	return s.Shard.(tiercache.Tracker).Track(ctx, channels, prefix, onReady, onMessage, onChange)
}

func TestStallIsForgiven(t *testing.T) {
	var checks sync.WaitGroup
	for _, r := range slices.Concat(contextRules, subscribeRules, lossRules, trackRules) {
		checks.Go(func() {
			if err := r.apply(&stalling{Shard: broken.Whole()}, ruleTime); err != nil {
				t.Errorf("%s: %v", r.Name, err)
			}
		})
	}
	checks.Wait()
}
