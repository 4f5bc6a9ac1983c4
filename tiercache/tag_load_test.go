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
	"github.com/shardkit/shardkit/tiercache/memory"
)

// A user says itself what it depends on.
var byTeam = tiercache.TagsOf(func(p user) []string { return []string{"team:" + p.Team} })

func loadsUser(p user) tiercache.Loader[user] {
	return func(context.Context) (user, error) { return p, nil }
}

// TestTagsOf: values have the tags that they name, whoever stores them, and others
// keep theirs.
func TestTagsOf(t *testing.T) {
	stores := map[string]func(c *tiercache.Cache[user], key string, p user) error{
		"Set": func(c *tiercache.Cache[user], key string, p user) error {
			return c.Set(context.Background(), key, p, byTeam)
		},
		"SetMany": func(c *tiercache.Cache[user], key string, p user) error {
			return c.SetMany(context.Background(), map[string]user{key: p, key + "other": {"other", "of another"}}, byTeam)
		},
		"GetOrLoad": func(c *tiercache.Cache[user], key string, p user) error {
			_, err := c.GetOrLoad(context.Background(), key, loadsUser(p), byTeam)
			return err
		},
		"GetOrReload": func(c *tiercache.Cache[user], key string, p user) error {
			_, err := c.GetOrReload(context.Background(), key, func(context.Context, user, bool) (user, error) { return p, nil }, byTeam)
			return err
		},
		"GetMany": func(c *tiercache.Cache[user], key string, p user) error {
			_, err := c.GetMany(context.Background(), []string{key, key + "other", key + "none"}, func(context.Context, []string) (map[string]user, error) {
				return map[string]user{key: p, key + "other": {"other", "of another"}}, nil
			}, byTeam)
			return err
		},
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := shards(3)
				a, b := open[user](t, s, nil), open[user](t, s, nil)
				noL1 := open[user](t, s, &tiercache.Options{LocalBytes: -1})
				synced(t, a, b, noL1)
				all := []*tiercache.Cache[user]{a, b, noL1}
				for round := range 3 {
					for i := range 20 {
						if err := store(a, fmt.Sprint("k", i), user{fmt.Sprint(i), fmt.Sprint(i % 2)}); err != nil {
							t.Fatal(err)
						}
					}
					synctest.Wait()
					for i := range 20 {
						for _, c := range all {
							wantGet(t, c, fmt.Sprint("k", i), user{fmt.Sprint(i), fmt.Sprint(i % 2)})
						}
					}
					mustInvalidate(t, b, "team:1")
					synctest.Wait()
					for i := range 20 {
						for _, c := range all {
							if i%2 == 1 {
								wantNone(t, c, fmt.Sprint("k", i))
							} else {
								wantGet(t, c, fmt.Sprint("k", i), user{fmt.Sprint(i), "0"})
							}
							if name == "SetMany" || name == "GetMany" {
								wantGet(t, c, fmt.Sprint("k", i, "other"), user{"other", "of another"})
							}
						}
					}
					if n := a.Stats().RefusedFills; n != 0 {
						t.Errorf("round %d: %d fills were refused", round, n)
					}
				}
			})
		})
	}
}

// TestTagsOfBeside: tags of the call count besides.
func TestTagsOfBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open[user](t, one(memory.New(nil)), nil)
		synced(t, c)
		for _, tag := range []string{"all", "team:1"} {
			if _, err := c.GetOrLoad(t.Context(), "k", loadsUser(user{"a", "1"}), byTeam, tiercache.Tags("all")); err != nil {
				t.Fatal(err)
			}
			wantGet(t, c, "k", user{"a", "1"})
			mustInvalidate(t, c, tag)
			wantNone(t, c, "k")
		}
		nothing := func(context.Context) (user, error) { return user{}, tiercache.ErrNotFound }
		for range 2 {
			if _, err := c.GetOrLoad(t.Context(), "none", nothing, byTeam, tiercache.Tags("all")); !errors.Is(err, tiercache.ErrNotFound) {
				t.Error(err)
			}
		}
		if n := c.Stats().Loads; n != 3 {
			t.Errorf("got %d loads, want 3: two values, and one that does not exist", n)
		}
		mustInvalidate(t, c, "all")
		if _, err := c.GetOrLoad(t.Context(), "none", loadsUser(user{"b", "1"}), byTeam); err != nil {
			t.Errorf("what did not exist was remembered in spite of its tag: %v", err)
		}
	})
}

// TestTagsOfRefused: what no tags can be had of is an error, for loads to those who ask, and nothing is stored.
func TestTagsOfRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open[user](t, one(memory.New(nil)), nil)
		synced(t, c)
		load := loadsUser(user{"a", "1"})
		for name, opt := range map[string]tiercache.CallOption{
			"of another type": tiercache.TagsOf(func(int) []string { return nil }),
			"an empty tag":    tiercache.TagsOf(func(user) []string { return []string{""} }),
			"too many": tiercache.TagsOf(func(user) (tags []string) {
				for i := range 33 {
					tags = append(tags, fmt.Sprint(i))
				}
				return tags
			}),
		} {
			if err := c.Set(t.Context(), "k", user{}, opt); !errors.Is(err, tiercache.ErrTag) {
				t.Errorf("%s: Set: got %v, want ErrTag", name, err)
			}
			if _, err := c.GetOrLoad(t.Context(), "k", load, opt); !errors.Is(err, tiercache.ErrTag) {
				t.Errorf("%s: GetOrLoad: got %v, want ErrTag", name, err)
			}
			wantNone(t, c, "k")
		}
		panics := tiercache.TagsOf(func(user) []string { panic("tags") })
		var p *tiercache.PanicError
		if _, err := c.GetOrLoad(t.Context(), "k", load, panics); !errors.As(err, &p) || p.Value != "tags" {
			t.Errorf("it panics: got %v, want a *PanicError", err)
		}
		if _, err := c.GetOrLoad(t.Context(), "k", load, tiercache.TagsOf[user](nil)); err != nil {
			t.Errorf("nil: got %v", err)
		}
	})
}

// A panicking is a value whose codec panics.
type panicking struct{}

func (panicking) MarshalText() ([]byte, error) { panic("marshal") }

// TestCodecPanics: a loaded value whose codec panics is an error, and frees the key.
func TestCodecPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open[any](t, one(memory.New(nil)), nil)
		synced(t, c)
		for range 2 {
			var p *tiercache.PanicError
			if _, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (any, error) { return panicking{}, nil }); !errors.As(err, &p) {
				t.Errorf("got %v, want a *PanicError", err)
			}
		}
	})
}

// TestTagsOfDuringLoad: an invalidation wins over a load whose tags were not known
// before its end, whether the tag had values or not, by whoever it was invalidated, and whether or not
// that was heard of. Who asks after it gets what is loaded after it.
func TestTagsOfDuringLoad(t *testing.T) {
	for _, had := range []bool{false, true} {
		for _, deaf := range []bool{false, true} {
			t.Run(fmt.Sprintf("tag had values %v, notices lost %v", had, deaf), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					shard := memory.New(nil)
					network := &faulty{Shard: shard}
					a, b := open[user](t, one(network), nil), open[user](t, one(shard), nil)
					synced(t, a, b)
					if had {
						mustSet(t, b, "other", user{"x", "1"}, byTeam)
					}
					synctest.Wait()
					network.swallow.Store(deaf)
					first, second := make(chan user, 1), make(chan user, 1)
					var loads atomic.Int64
					ask := func(to chan user) {
						p, err := a.GetOrLoad(context.Background(), "k", func(context.Context) (user, error) {
							p := user{fmt.Sprint(loads.Add(1)), "1"}
							time.Sleep(300 * time.Millisecond)
							return p, nil
						}, byTeam)
						if err != nil {
							t.Error(err)
						}
						to <- p
					}
					go ask(first)
					time.Sleep(100 * time.Millisecond)
					mustInvalidate(t, b, "team:1")
					synctest.Wait()
					go ask(second)
					if p := <-first; p.Name != "1" {
						t.Errorf("who asked before: got %v", p)
					}
					if p := <-second; p.Name != "2" && !deaf {
						t.Errorf("who asks after it: got %v, want what is loaded then", p)
					}
					network.swallow.Store(false)
					time.Sleep(bound)
					for _, c := range []*tiercache.Cache[user]{a, b} {
						if p, err := c.Get(t.Context(), "k"); err == nil && p.Name == "1" {
							t.Error("the load from before the invalidation is there")
						}
					}
				})
			})
		}
	}
}

// TestTagsOfCost: one more round trip where a tag has no values yet, none where it has.
func TestTagsOfCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &faulty{Shard: memory.New(nil)}
		c := open[user](t, one(network), &tiercache.Options{Heartbeat: time.Hour})
		synced(t, c)
		loaded := func(key, team string) int64 {
			before := network.commands.Load()
			if _, err := c.GetOrLoad(t.Context(), key, loadsUser(user{key, team}), byTeam); err != nil {
				t.Fatal(err)
			}
			return network.commands.Load() - before
		}
		loaded("first", "0") // scripts are loaded
		if n := loaded("a", "1"); n != 4 {
			t.Errorf("a tag without values: got %d commands, want 4", n)
		}
		if n := loaded("b", "1"); n != 3 {
			t.Errorf("a tag with values: got %d commands, want 3", n)
		}
	})
}

// TestOthersTags: who asks after the invalidation of a tag that the value on its
// shard has, though his call names none, does not get that value from a load ahead of its end
// that fails.
func TestOthersTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := one(memory.New(nil))
		a := open[int](t, s, &tiercache.Options{TTL: 10 * time.Second, Jitter: -1, RefreshAhead: 4 * time.Second})
		b := open[int](t, s, nil)
		synced(t, a, b)
		mustSet(t, b, "k", 1, tiercache.Tags("t"), tiercache.TTL(10*time.Second))
		synctest.Wait()
		var loads atomic.Int64
		ask := func() (int, error) {
			return a.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) {
				if loads.Add(1) > 1 {
					return 2, nil
				}
				time.Sleep(time.Second)
				return 0, errDown
			})
		}
		for at := range 11 { // of its life: the load ahead is under way after that
			if v, err := ask(); v != 1 || err != nil {
				t.Fatalf("after %d s: got %d, %v", at, v, err)
			}
			synctest.Wait()
			if loads.Load() > 0 {
				break
			}
			time.Sleep(900 * time.Millisecond)
		}
		synctest.Wait()
		if n := loads.Load(); n != 1 {
			t.Fatalf("got %d loads ahead, want 1", n)
		}
		mustInvalidate(t, b, "t")
		synctest.Wait()
		if v, err := ask(); v != 2 || err != nil {
			t.Errorf("after the invalidation: got %d, %v, want what is loaded then", v, err)
		}
	})
}

// TestTagsOfRefreshed: a value loaded ahead has the tags that it names, and a tag
// invalidated meanwhile wins.
func TestTagsOfRefreshed(t *testing.T) {
	for name, meanwhile := range map[string]bool{"after": false, "meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := one(memory.New(nil))
				c := open[user](t, s, &tiercache.Options{TTL: 10 * time.Second, Jitter: -1, RefreshAhead: 4 * time.Second})
				b := open[user](t, s, nil)
				synced(t, c, b)
				var loads int
				load := func(context.Context) (user, error) {
					loads++
					p := user{fmt.Sprint(loads), fmt.Sprint(loads)} // of another team each time
					time.Sleep(100 * time.Millisecond)
					return p, nil
				}
				ask := func() user {
					p, err := c.GetOrLoad(t.Context(), "k", load, byTeam)
					if err != nil {
						t.Fatal(err)
					}
					return p
				}
				ask()
				time.Sleep(9 * time.Second)
				if p := ask(); p.Name != "1" {
					t.Errorf("got %v, want the value of before", p)
				}
				if meanwhile {
					time.Sleep(50 * time.Millisecond)
					mustInvalidate(t, b, "team:2")
				}
				time.Sleep(200 * time.Millisecond)
				if meanwhile {
					if p, err := b.Get(t.Context(), "k"); err == nil && p.Name == "2" {
						t.Error("what was loaded ahead is there, whose tag was invalidated meanwhile")
					}
					return
				}
				wantGet(t, b, "k", user{"2", "2"})
				mustInvalidate(t, b, "team:2")
				wantNone(t, b, "k")
				synctest.Wait()
				wantNone(t, c, "k")
			})
		})
	}
}
