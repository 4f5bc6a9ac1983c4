package tiercache_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

// TestWrittenAsItReturns: while a shard is taken in again, a key of it is written, or its
// tag invalidated, at each step between two commands. Nothing from before is read then,
// though the notes may have been read when that one was left.
func TestWrittenAsItReturns(t *testing.T) {
	lost := "set, and the shard is lost again"
	for name, write := range map[string]func(ctx context.Context, p *process, key string) error{
		"set":        func(ctx context.Context, p *process, key string) error { return p.Set(ctx, key, 2) },
		"delete":     func(ctx context.Context, p *process, key string) error { return p.Delete(ctx, key) },
		"invalidate": func(ctx context.Context, p *process, _ string) error { return p.InvalidateTag(ctx, "t") },
		lost: func(ctx context.Context, p *process, key string) error {
			p.cut("a")
			defer p.mend("a")
			err := p.Set(ctx, key, 2)
			var failed *tiercache.ShardError
			if !errors.As(err, &failed) || errors.Is(err, tiercache.ErrLate) || errors.Is(err, tiercache.ErrUnavailable) {
				return fmt.Errorf("got %v, want that nobody knows whether it is stored", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			written := 0
			for step, more := int64(0), true; more; step++ {
				synctest.Test(t, func(t *testing.T) {
					s := newSite("a", "b", "c")
					p := s.process(t, nil, tiercache.Mechanisms{})
					synced(t, p.Cache)
					key, other := keyWith(t, p, "a", "b"), keyWith(t, p, "a", "c")
					mustSet(t, p.Cache, key, 1, tiercache.Tags("t"))
					s.cut("a")
					are(t, s.processes, "a")
					mustSet(t, p.Cache, other, 1) // so that there are notes to be read
					var steps atomic.Int64
					var err error
					done := func() {
						if p.Health()[0].State == tiercache.ShardReturning && steps.Add(1) == step+1 {
							err = write(t.Context(), p, key)
							written++
						}
					}
					for _, n := range p.networks {
						n.done.Store(&done)
					}
					s.mend("a")
					are(t, s.processes)
					if err != nil {
						t.Errorf("step %d: %v", step, err)
					}
					more = steps.Load() > step
					if name == lost {
						time.Sleep(bound)
					}
					if more && !wantNot(t, s.processes, key, 1) {
						t.Errorf("step %d: what was overwritten while the shard came back was read", step)
					}
				})
			}
			if written < 3 {
				t.Errorf("written at %d steps, want 3 at least", written)
			}
		})
	}
}
