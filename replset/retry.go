package replset

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// flag is a bit that is only ever set.
type flag struct{ v atomic.Bool }

func (f *flag) set()        { f.v.Store(true) }
func (f *flag) isSet() bool { return f.v.Load() }

// patiently calls try until it succeeds, fails for good, patience is over or
// ctx ends, waiting longer after each failure. The last error is returned.
func (s *Set) patiently(ctx context.Context, patience time.Duration, try func() error) error {
	deadline := time.Now().Add(patience)
	for wait := backoff(0); ; wait++ {
		err := try()
		if err == nil || !transient(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		if !wait.sleep(ctx) {
			return err
		}
	}
}

// backoff counts the failures in a row.
type backoff int

// sleep waits 2 ms after the first failure and twice as long after each, up to
// 128 ms, with jitter so that processes that failed together do not come back
// together. It returns false when ctx has ended.
func (b backoff) sleep(ctx context.Context) bool {
	d := 2 * time.Millisecond << min(b, 6)
	timer := time.NewTimer(d/2 + rand.N(d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
