package tier

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// TestLoadersLive: a loader that panics, hangs, fails, finds nothing, or returns after
// Close is an error as documented, frees its key, and leaves no value.
func TestLoadersLive(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		nodes := servers(t, 1, harness.Options{})
		cache := open[int](t, c, nodes, &tiercache.Options{LoadTimeout: time.Second})
		other := open[int](t, c, nodes, nil)
		synced(t, cache, other)
		hang := make(chan struct{})
		boom := errors.New("boom")
		for _, l := range []struct {
			name string
			load tiercache.Loader[int]
			is   func(error) bool
		}{
			{"panics", func(context.Context) (int, error) { panic("ouch") }, func(err error) bool {
				var p *tiercache.PanicError
				return errors.As(err, &p) && p.Value == "ouch"
			}},
			{"hangs", func(context.Context) (int, error) { <-hang; return 1, nil }, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
			{"fails", func(context.Context) (int, error) { return 0, boom }, func(err error) bool {
				var failed *tiercache.LoadError
				return errors.As(err, &failed) && errors.Is(err, boom)
			}},
			{"finds nothing", func(context.Context) (int, error) { return 0, tiercache.ErrNotFound }, func(err error) bool { return errors.Is(err, tiercache.ErrNotFound) }},
		} {
			if v, err := cache.GetOrLoad(t.Context(), l.name, l.load); !l.is(err) {
				t.Errorf("a loader that %s: got %d, %v", l.name, v, err)
			}
			wantNone(t, other, l.name)
			loads := 0
			v, err := other.GetOrLoad(t.Context(), l.name, func(context.Context) (int, error) { loads++; return 2, nil })
			if absent := l.name == "finds nothing"; absent && (!errors.Is(err, tiercache.ErrNotFound) || loads != 0) {
				t.Errorf("what does not exist: another process got %d, %v with %d loads, want ErrNotFound without one", v, err, loads)
			} else if !absent && (v != 2 || err != nil || loads != 1) {
				t.Errorf("after a loader that %s: got %d, %v with %d loads", l.name, v, err, loads)
			}
		}
		began, asked := make(chan struct{}), make(chan error, 1)
		go func() {
			_, err := cache.GetOrLoad(context.Background(), "closed", func(context.Context) (int, error) { close(began); <-hang; return 1, nil })
			asked <- err
		}()
		<-began
		closed := time.Now()
		ok(t, cache.Close())
		if took := time.Since(closed); took > 5*time.Second {
			t.Errorf("Close took %v with a loader that hangs", took)
		}
		if err := <-asked; !errors.Is(err, tiercache.ErrClosed) {
			t.Errorf("a load under way at Close: got %v, want ErrClosed", err)
		}
		close(hang) // both loaders return now
		if v, err := other.Get(t.Context(), "hangs"); v != 2 || err != nil {
			t.Errorf("after the loader that hung returned: got %d, %v, want 2", v, err)
		}
		wantNone(t, other, "closed")
	})
}

// TestRefreshInvalidatedLive: a tag that is invalidated while a value of it is loaded
// ahead of its end wins, whether the call named it or the value.
func TestRefreshInvalidatedLive(t *testing.T) {
	t.Parallel()
	of := map[string]tiercache.CallOption{"Tags": tiercache.Tags("t"), "TagsOf": tiercache.TagsOf(func(int) []string { return []string{"t"} })}
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		nodes := servers(t, 1, harness.Options{})
		opts := &tiercache.Options{TTL: 4 * time.Second, Jitter: -1, RefreshAhead: 2 * time.Second}
		a, b := open[int](t, c, nodes, opts), open[int](t, c, nodes, nil)
		synced(t, a, b)
		for name, tags := range of {
			var loads atomic.Int64
			began, goOn := make(chan struct{}), make(chan struct{})
			ask := func() int {
				v, err := a.GetOrLoad(t.Context(), name, func(context.Context) (int, error) {
					n := int(loads.Add(1))
					if n == 2 {
						close(began)
						<-goOn
					}
					return n, nil
				}, tags)
				ok(t, err)
				return v
			}
			ask()
			within(t, 10*time.Second, "it is loaded ahead", func() bool {
				select {
				case <-began:
					return true
				default:
					return ask() != 1
				}
			})
			refused := a.Stats().RefusedFills
			ok(t, b.InvalidateTag(t.Context(), "t"))
			close(goOn)
			within(t, 5*time.Second, "that fill is refused", func() bool { return a.Stats().RefusedFills > refused })
			wantNone(t, b, name)
			within(t, bound, "who asks gets what is loaded then", func() bool { return ask() == 3 })
		}
	})
}
