package tiercache

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlines end operations at Options.Timeout. A timer for each call is a tenth
// of a short read, so calls that begin at about the same time share one.
type deadlines struct {
	timeout time.Duration
	last    atomic.Pointer[deadline]
}

type deadline struct {
	ctx    context.Context
	cancel context.CancelFunc // never called: the timer ends it
	until  int64              // for calls that begin before this, ns
}

// share is the part of a time-out that a call may lose by joining an earlier one.
const share = 32

// limit returns ctx, made to end after the time-out or up to 1/share of it
// before. One that ends earlier by itself is returned as it is.
func (d *deadlines) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d.timeout {
		return ctx, func() {}
	}
	if ctx.Done() != nil {
		return context.WithTimeout(ctx, d.timeout)
	}
	t := now()
	last := d.last.Load()
	if last == nil || t >= last.until {
		last = &deadline{until: t + int64(d.timeout/share)}
		last.ctx, last.cancel = context.WithTimeout(context.Background(), d.timeout)
		d.last.Store(last)
	}
	return &limited{last.ctx, ctx}, func() {}
}

// limited ends with its Context, and has the values of another one.
type limited struct {
	context.Context
	values context.Context
}

func (l *limited) Value(key any) any {
	if v := l.values.Value(key); v != nil {
		return v
	}
	return l.Context.Value(key) // by which contexts made of this one end with it
}
