package tiercache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// TestUnreadable: a value that this process cannot read is loaded once, counted
// once, and replaced, whichever way it is asked for.
func TestUnreadable(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *tiercache.Cache[int], tiercache.Loader[int]) (int, error){
		"GetOrLoad": func(ctx context.Context, c *tiercache.Cache[int], load tiercache.Loader[int]) (int, error) {
			return c.GetOrLoad(ctx, "k", load)
		},
		"GetMany": func(ctx context.Context, c *tiercache.Cache[int], load tiercache.Loader[int]) (int, error) {
			m, err := c.GetMany(ctx, []string{"k"}, func(ctx context.Context, _ []string) (map[string]int, error) {
				v, err := load(ctx)
				return map[string]int{"k": v}, err
			})
			return m["k"], err
		},
		"GetOrLease": func(ctx context.Context, c *tiercache.Cache[int], load tiercache.Loader[int]) (int, error) {
			f, err := c.GetOrLease(ctx, "k")
			if !errors.Is(err, tiercache.ErrNotFound) {
				return f.Value, err
			}
			v, err := load(ctx)
			return v, errors.Join(err, c.Fill(ctx, "k", f.Lease, v))
		},
	} {
		for kind, spoil := range map[string]func(text string) string{
			"another codec":   func(text string) string { return text[:36] + "\x63" + text[37:] },
			"a later flag":    func(text string) string { return text[:35] + "\x80" + text[36:] },
			"a broken value":  func(text string) string { return text[:37] + "{" },
			"cut short":       func(text string) string { return text[:36] },
			"no envelope":     func(string) string { return "x" },
			"a later version": func(text string) string { return "tc\x02" + text[3:] },
		} {
			t.Run(name+" of "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shard := memory.New(nil)
					a, b := open[int](t, one(shard), nil), open[int](t, one(shard), &tiercache.Options{LocalBytes: -1})
					synced(t, a)
					mustSet(t, b, "k", 1)
					good, _ := shard.Do(t.Context(), []string{"GET", "tc:k"})
					if _, err := shard.Do(t.Context(), []string{"SET", "tc:k", spoil(good.(string))}); err != nil {
						t.Fatal(err)
					}
					loads := 0
					for range 3 {
						v, err := ask(t.Context(), a, func(context.Context) (int, error) { loads++; return 2, nil })
						if v != 2 || err != nil {
							t.Errorf("got %v, %v, want the loaded 2", v, err)
						}
					}
					if n := a.Stats().Corrupt; loads != 1 || n != 1 {
						t.Errorf("got %d loads and %d corrupt values, want one of each", loads, n)
					}
					wantGet(t, b, "k", 2)
				})
			})
		}
	}
}

// TestUnreadableWrittenMeanwhile: what is written over an unreadable value while
// it is loaded stays.
func TestUnreadableWrittenMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[int](t, one(shard), nil), open[int](t, one(shard), &tiercache.Options{LocalBytes: -1})
		synced(t, a)
		mustSet(t, b, "k", 1)
		good, _ := shard.Do(t.Context(), []string{"GET", "tc:k"})
		if _, err := shard.Do(t.Context(), []string{"SET", "tc:k", good.(string)[:37] + "{"}); err != nil {
			t.Fatal(err)
		}
		v, err := a.GetOrLoad(t.Context(), "k", func(ctx context.Context) (int, error) {
			mustSet(t, b, "k", 3)
			return 2, nil
		})
		if v != 2 || err != nil {
			t.Errorf("got %v, %v, want the loaded 2", v, err)
		}
		synctest.Wait()
		wantGet(t, a, "k", 3)
		wantGet(t, b, "k", 3)
	})
}
