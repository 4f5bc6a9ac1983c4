package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// serverError is an error reply in the server's own words. rueidis's error
// underneath, a *rueidis.RedisError, leaves out the code ERR.
type serverError struct {
	text string
	err  error
}

func (e *serverError) Error() string { return e.text }
func (e *serverError) Unwrap() error { return e.err }

// fromOldMap reports whether an old slot map would explain the error. The last
// of them is what a script without keys meets, which gets no MOVED.
func (e *serverError) fromOldMap() bool {
	code, _, _ := strings.Cut(e.text, " ")
	switch code {
	case "MOVED", "CLUSTERDOWN", "READONLY", "MASTERDOWN":
		return true
	}
	return strings.Contains(e.text, "non local key")
}

// failure is an error that no server said.
func failure(ctx context.Context, addr string, err error) error {
	ended := ctx.Err()
	if deadline, ok := ctx.Deadline(); ended == nil && ok && !time.Now().Before(deadline) {
		ended = context.DeadlineExceeded // which the connection noticed before ctx
	}
	if ended != nil {
		return fmt.Errorf("rueidisbackend: %s: %w (%w)", addr, err, ended)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		// A dial's own time-out calls itself context.DeadlineExceeded. Callers
		// would take it for the end of their own context, and not try again.
		return fmt.Errorf("rueidisbackend: %s: %v", addr, err)
	}
	return fmt.Errorf("rueidisbackend: %s: %w", addr, err)
}

func notSent(ended error) error {
	return fmt.Errorf("rueidisbackend: nothing was sent: %w", ended)
}

func gaveUp(ended error) error {
	return fmt.Errorf("rueidisbackend: gave up waiting for the reply, and the command may still take effect: %w", ended)
}
