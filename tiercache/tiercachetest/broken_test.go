package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	for _, d := range broken.Defects {
		delete(unproved, d.Rule)
		t.Run(d.Rule+"/"+strings.ReplaceAll(d.Name, " ", "-"), func(t *testing.T) {
			t.Parallel() // many of them wait
			i := slices.IndexFunc(rules, func(r Rule) bool { return r.Name == d.Rule })
			if i < 0 {
				t.Fatalf("there is no rule %q", d.Rule)
			}
			err := rules[i].apply(d.New(), ruleTime)
			var na *NotApplicable
			if err == nil || errors.As(err, &na) {
				t.Fatalf("a shard that %s passes (%v)", d.Name, err)
			}
			t.Log(err)
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
