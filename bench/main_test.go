package bench

import (
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(serveMode); mode != "" {
		serveTest(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// inBubble is the pacer for synctest, whose clock does not move during a system call.
func inBubble(o *Options) *Options {
	o.pace = sleepPace
	return o
}

// sleeper is an operation that takes exactly d of a synctest clock.
func sleeper(d time.Duration) Op {
	return func(context.Context) error {
		time.Sleep(d)
		return nil
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if got < want*(1-within) || got > want*(1+within) {
		t.Errorf("%s: got %v, want %v within %v %%", what, got, want, 100*within)
	}
}

func mustRun(t *testing.T, s Scenario, o *Options) *Result {
	t.Helper()
	r, err := Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func one(op Op) Scenario { return Scenario{Name: "test", Variants: []Variant{Func("a", op)}} }
