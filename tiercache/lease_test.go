package tiercache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// lease asks for a key that is missing.
func lease(t *testing.T, c *tiercache.Cache[int], key string) string {
	t.Helper()
	f, err := c.GetOrLease(t.Context(), key)
	if !errors.Is(err, tiercache.ErrNotFound) || len(f.Lease) != 16 {
		t.Fatalf("got %+v, %v; want ErrNotFound and a lease of 16 bytes", f, err)
	}
	return f.Lease
}

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[int](t, one(shard), nil), open[int](t, one(shard), nil)
		synced(t, a, b)
		ctx := t.Context()
		first, second := lease(t, a, "k"), lease(t, b, "k")
		if first != second {
			t.Error("two who ask before anything is written got different leases")
		}
		if err := a.Fill(ctx, "k", first, 7, tiercache.TTL(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := b.Fill(ctx, "k", second, 8); !errors.Is(err, tiercache.ErrLease) {
			t.Errorf("a second fill: got %v, want ErrLease", err)
		}
		time.Sleep(20 * time.Second)
		for name, c := range map[string]*tiercache.Cache[int]{"of L1": a, "of the shard": b} {
			f, err := c.GetOrLease(ctx, "k")
			if err != nil || f.Value != 7 || f.Lease != "" || f.Left.Round(time.Millisecond) != 40*time.Second {
				t.Errorf("%s: got %+v, %v; want 7 for 40 s more", name, f, err)
			}
		}
	})
}

// TestLeaseIsOver: whatever happens to a key ends its lease.
func TestLeaseIsOver(t *testing.T) {
	for name, happen := range map[string]func(context.Context, *memory.Shard, *tiercache.Cache[int]) error{
		"written": func(ctx context.Context, _ *memory.Shard, c *tiercache.Cache[int]) error { return c.Set(ctx, "k", 1) },
		"deleted": func(ctx context.Context, _ *memory.Shard, c *tiercache.Cache[int]) error { return c.Delete(ctx, "k") },
		"flushed": func(ctx context.Context, s *memory.Shard, _ *tiercache.Cache[int]) error {
			_, err := s.Do(ctx, []string{"FLUSHALL"})
			return err
		},
		"restarted": func(_ context.Context, s *memory.Shard, _ *tiercache.Cache[int]) error {
			s.Restart()
			return nil
		},
		"expired": func(context.Context, *memory.Shard, *tiercache.Cache[int]) error {
			time.Sleep(31 * time.Second)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shard := memory.New(nil)
				c := open[int](t, one(shard), nil)
				synced(t, c)
				held := lease(t, c, "k")
				if err := happen(t.Context(), shard, c); err != nil {
					t.Fatal(err)
				}
				if err := c.Fill(t.Context(), "k", held, 9); !errors.Is(err, tiercache.ErrLease) {
					t.Errorf("got %v, want ErrLease", err)
				}
				if v, err := c.Get(t.Context(), "k"); v == 9 {
					t.Errorf("the fill is there: %v, %v", v, err)
				}
			})
		})
	}
}

func TestLeaseRefusesWhatIsNone(t *testing.T) {
	c := open[int](t, one(memory.New(nil)), nil)
	for _, held := range []string{"", "x", string(make([]byte, 16)), string(make([]byte, 1000))} {
		lease(t, c, "k")
		if err := c.Fill(t.Context(), "k", held, 1); !errors.Is(err, tiercache.ErrLease) {
			t.Errorf("lease %q: got %v, want ErrLease", held, err)
		}
	}
	if err := c.Fill(t.Context(), "k", lease(t, c, "k"), 1, tiercache.TTL(0)); !errors.Is(err, tiercache.ErrTTL) {
		t.Errorf("no life: got %v, want ErrTTL", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.GetOrLease(t.Context(), "k"); !errors.Is(err, tiercache.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if err := c.Fill(t.Context(), "k", "x", 1); !errors.Is(err, tiercache.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}
