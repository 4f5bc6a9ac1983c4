package goredis

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// late is a context whose deadline has passed and that has not been told yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Microsecond), true }

// What the network says once the deadline has passed is the context's end,
// whichever of the two is told first.
func TestNetworkErrorAfterTheDeadline(t *testing.T) {
	err := ended(late{t.Context()}, os.ErrDeadlineExceeded)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, os.ErrDeadlineExceeded) || !strings.HasPrefix(err.Error(), "goredis: ") {
		t.Errorf("got %v, want both the context's error and the network's", err)
	}
	future, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := ended(future, os.ErrDeadlineExceeded); err != os.ErrDeadlineExceeded {
		t.Errorf("before the deadline: got %v, want the network's error as it is", err)
	}
}
