package tiercache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestLimit: whatever the caller's context, an operation ends at the earlier of
// its deadline and the time-out, or a little before; it ends with a caller who
// leaves, and has the caller's values.
func TestLimit(t *testing.T) {
	const timeout = 320 * time.Millisecond
	type name struct{}
	synctest.Test(t, func(t *testing.T) {
		d := deadlines{timeout: timeout}
		named := context.WithValue(context.Background(), name{}, "value")
		sooner, cancel := context.WithTimeout(named, timeout/2)
		defer cancel()
		later, cancel := context.WithTimeout(named, 2*timeout)
		defer cancel()
		for what, c := range map[string]struct {
			ctx         context.Context
			least, most time.Duration
		}{
			"no end":     {named, timeout - timeout/share, timeout},
			"sooner":     {sooner, timeout / 2, timeout / 2},
			"later":      {later, timeout, timeout},
			"no end too": {context.WithoutCancel(later), timeout - timeout/share, timeout},
		} {
			ctx, cancel := d.limit(c.ctx)
			defer cancel()
			at, _ := ctx.Deadline()
			if left := time.Until(at); left < c.least || left > c.most {
				t.Errorf("%s: ends in %v, want %v to %v", what, left, c.least, c.most)
			}
			if v := ctx.Value(name{}); v != "value" {
				t.Errorf("%s: the caller's value is %v", what, v)
			}
			again, cancel := d.limit(ctx)
			defer cancel()
			if again != ctx {
				t.Errorf("%s: a second limit changes it", what)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		d := deadlines{timeout: timeout}
		for range 1000 {
			start := time.Now()
			ctx, cancel := d.limit(context.Background())
			defer cancel()
			at, _ := ctx.Deadline()
			if left := at.Sub(start); left < timeout-timeout/share || left > timeout {
				t.Fatalf("ends in %v, want %v or a little less", left, timeout)
			}
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := d.limit(context.Background())
		defer cancel()
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		<-child.Done()
		if !errors.Is(child.Err(), context.DeadlineExceeded) || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("after the time-out: %v, and its child %v", ctx.Err(), child.Err())
		}
	})
	leaving, leave := context.WithCancel(context.Background())
	d := deadlines{timeout: time.Hour}
	ctx, cancel := d.limit(leaving)
	defer cancel()
	leave()
	if ctx.Err() != context.Canceled {
		t.Errorf("the caller left, and the operation goes on: %v", ctx.Err())
	}
}
