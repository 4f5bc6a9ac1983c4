package harness

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func withTimeoutUnlessSet(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, set := ctx.Deadline(); set {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

// poll calls done every 10 ms until it returns nil. If ctx ends first, the error wraps ctx's and says what was still missing:
// done's last error from before the end, since one from after it says no more than that.
func poll(ctx context.Context, done func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var missing error
	for {
		err := done()
		var final finalError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &final):
			return final.error
		case missing == nil || !isOver(ctx):
			missing = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), missing)
		case <-tick.C:
		}
	}
}

// isOver also knows of a deadline that has passed without ctx having been told yet: a dial may end a little sooner than that.
func isOver(ctx context.Context) bool {
	deadline, set := ctx.Deadline()
	return ctx.Err() != nil || set && !time.Now().Before(deadline)
}

// A finalError ends a poll at once: waiting longer cannot help.
type finalError struct{ error }
