package replsettest

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	for _, d := range broken.Defects {
		delete(unproved, d.Rule)
		t.Run(d.Rule+"/"+strings.ReplaceAll(d.Name, " ", "-"), func(t *testing.T) {
			t.Parallel() // most of them sleep
			i := slices.IndexFunc(rules, func(r Rule) bool { return r.Name == d.Rule })
			if i < 0 {
				t.Fatalf("there is no rule %q", d.Rule)
			}
			err := rules[i].apply(d.New(), ruleTime)
			var na *NotApplicable
			if err == nil || errors.As(err, &na) {
				t.Fatalf("a backend that %s passes (%v)", d.Name, err)
			}
			t.Log(err)
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
