package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// writes is a set's whole life, with what it must hold after each step.
func writes(t *testing.T) []struct {
	name  string
	write func(s *replset.Set) error
	want  []string // nil: cleared
} {
	ctx := t.Context()
	many := make([]string, 700)
	for i := range many {
		many[i] = fmt.Sprint("member-", i)
	}
	numbers := make([]string, 200)
	for i := range numbers {
		numbers[i] = fmt.Sprint(1_000_000 + i)
	}
	const never = "never"
	return []struct {
		name  string
		write func(s *replset.Set) error
		want  []string
	}{
		{"publish", func(s *replset.Set) error { return s.Publish(ctx, []string{"a", "b", "a"}) }, []string{"a", "b"}},
		{"add", func(s *replset.Set) error { return s.Add(ctx, "c", "a", "\x00\xff", "") }, []string{"a", "b", "c", "\x00\xff", ""}},
		{"remove", func(s *replset.Set) error { return s.Remove(ctx, "b", never, "") }, []string{"a", "c", "\x00\xff"}},
		{"apply", func(s *replset.Set) error {
			return s.Apply(ctx, replset.Delta{Add: []string{"d", "a"}, Remove: []string{"c", never}})
		}, []string{"a", "d", "\x00\xff"}},
		{"remove all", func(s *replset.Set) error { return s.Remove(ctx, "a", "d", "\x00\xff") }, []string{}},
		{"add to empty", func(s *replset.Set) error { return s.Add(ctx, "e") }, []string{"e"}},
		{"publish numbers", func(s *replset.Set) error { return s.Publish(ctx, numbers) }, numbers},
		{"publish empty", func(s *replset.Set) error { return s.Publish(ctx, nil) }, []string{}},
		{"publish many", func(s *replset.Set) error { return s.Publish(ctx, many) }, many},
		{"clear", func(s *replset.Set) error { return s.Clear(ctx) }, nil},
		{"publish again", func(s *replset.Set) error { return s.Publish(ctx, []string{"f"}) }, []string{"f"}},
		{"clear again", func(s *replset.Set) error { return s.Clear(ctx) }, nil},
		{"publish empty after clear", func(s *replset.Set) error { return s.Publish(ctx, nil) }, []string{}},
		{"and add", func(s *replset.Set) error { return s.Add(ctx, "g") }, []string{"g"}},
	}
}

// Each client writes by each rung of the ladder, and the result is the same.
func TestWrites(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	for _, rung := range rungs {
		t.Run(strings.ReplaceAll(rung.name, " ", "-"), func(t *testing.T) {
			eachClient(t, c, func(t *testing.T, b replset.Backend) {
				slots := some(48)
				s := newSet(t, rung.wrap(b), replset.Options{Slots: slots})
				for _, w := range writes(t) {
					if err := w.write(s); err != nil {
						t.Fatalf("%s: %v", w.name, err)
					}
					if w.want == nil {
						wantCleared(t, b, s, slots)
					} else {
						wantReplicas(t, b, s, slots, w.want...)
					}
					wantLives(t, b, s, slots, w.want == nil)
					if t.Failed() {
						t.Fatalf("after %s", w.name)
					}
				}
			})
		})
	}
}

// wantLives checks that only a cleared set's stamps end by themselves: a replica
// must not vanish an hour after a Clear that is long past.
func wantLives(t *testing.T, b replset.Backend, s *replset.Set, slots []uint16, cleared bool) {
	t.Helper()
	var keys []string
	var cmds [][]string
	for _, slot := range slots {
		key := slotmap.KeyForSlot(s.Name(), slot)
		keys = append(keys, key, key)
		cmds = append(cmds, []string{"PTTL", key}, []string{"PTTL", key + stampSuffix})
	}
	for i, v := range b.Pipeline(t.Context(), keys, cmds) {
		life, ok := v.(int64)
		switch {
		case !ok:
			t.Fatalf("%q: %v", cmds[i], v)
		case cleared && i%2 == 1 && (life <= 0 || life > time.Hour.Milliseconds()):
			t.Errorf("%q: the stamp of a cleared set lives %d ms, want an hour", cmds[i], life)
			return
		case !cleared && life > 0:
			t.Errorf("%q: it ends in %d ms", cmds[i], life)
			return
		}
	}
}

// All 16384 slots, once a client.
func TestWritesInEverySlot(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		var last replset.Progress
		s := newSet(t, b, replset.Options{Progress: func(p replset.Progress) {
			if p.Done < last.Done && p.Op == last.Op {
				t.Errorf("Progress went from %+v to %+v", last, p)
			}
			last = p
		}})
		members := make([]string, 16)
		for i := range members {
			members[i] = fmt.Sprint("user-", 1000+i)
		}
		start := time.Now()
		publish(t, s, members...)
		t.Logf("%s: %d members in 16384 slots in %v", c.Version(), len(members), time.Since(start).Round(time.Millisecond))
		if last.Done != slotmap.Slots || last.Total != slotmap.Slots || last.Failed != 0 {
			t.Errorf("Progress ended with %+v", last)
		}
		wantReplicas(t, b, s, some(1024), members...)
		if err := s.Apply(t.Context(), replset.Delta{Add: []string{"x"}, Remove: members[1:]}); err != nil {
			t.Fatal(err)
		}
		wantReplicas(t, b, s, all, members[0], "x")
		if err := s.Clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantCleared(t, b, s, some(1024))
	})
}

// Members of a megabyte, of nothing and of every byte value, in two slots.
func TestMembersOfAnyKind(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	for _, rung := range rungs {
		t.Run(strings.ReplaceAll(rung.name, " ", "-"), func(t *testing.T) {
			eachClient(t, c, func(t *testing.T, b replset.Backend) {
				slots := []uint16{3, 9000}
				s := newSet(t, rung.wrap(b), replset.Options{Slots: slots})
				var bytes []byte
				members := []string{"", strings.Repeat("\x00x", 1<<19)}
				for i := range 256 {
					bytes = append(bytes, byte(i))
					members = append(members, string([]byte{byte(i)}))
				}
				members = append(members, string(bytes))
				publish(t, s, members...)
				wantReplicas(t, b, s, slots, members...)
				if err := s.Remove(t.Context(), members[2:]...); err != nil {
					t.Fatal(err)
				}
				wantReplicas(t, b, s, slots, members[:2]...)
				if err := s.Add(t.Context(), members...); err != nil {
					t.Fatal(err)
				}
				wantReplicas(t, b, s, slots, members...)
				key := slotmap.KeyForSlot(name(t), 3)
				for _, m := range []string{"", members[1], string(bytes), "\xff"} {
					if in, err := s.Contains(t.Context(), key, m); !in || err != nil {
						t.Errorf("Contains(%.10q): %v, %v", m, in, err)
					}
				}
			})
		})
	}
}

// More members than a script's stack holds values.
func TestManyMembers(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	for _, rung := range rungs {
		t.Run(strings.ReplaceAll(rung.name, " ", "-"), func(t *testing.T) {
			b := open(t, "goredis", c)
			slots := []uint16{3, 9000, 15000}
			s := newSet(t, rung.wrap(b), replset.Options{Slots: slots})
			members := make([]string, 15_000)
			for i := range members {
				members[i] = fmt.Sprint("member-", i)
			}
			publish(t, s, members[:12_000]...)
			wantReplicas(t, b, s, slots, members[:12_000]...)
			if err := s.Apply(t.Context(), replset.Delta{Add: members[12_000:], Remove: members[:9000]}); err != nil {
				t.Fatal(err)
			}
			wantReplicas(t, b, s, slots, members[9000:]...)
		})
	}
}

// Keys of someone else's are left alone on real servers too, by every rung.
func TestForeignKeys(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	for _, rung := range rungs {
		t.Run(strings.ReplaceAll(rung.name, " ", "-"), func(t *testing.T) {
			eachClient(t, c, func(t *testing.T, b replset.Backend) {
				slots := some(48)
				s := newSet(t, rung.wrap(b), replset.Options{Slots: slots})
				key := func(i int) string { return slotmap.KeyForSlot(s.Name(), slots[i]) }
				do(t, b, "SADD", key(5), "theirs")
				do(t, b, "SET", key(11), "theirs")
				do(t, b, "SET", key(17)+stampSuffix, "theirs")
				do(t, b, "HSET", key(23)+stampSuffix, "f", "theirs")
				do(t, b, "ZADD", key(29), "1", "theirs")
				foreign := map[uint16]string{
					slots[5]: key(5), slots[11]: key(11), slots[17]: key(17) + stampSuffix, slots[23]: key(23) + stampSuffix, slots[29]: key(29),
				}
				for what, err := range map[string]error{
					"publish": s.Publish(t.Context(), []string{"a"}),
					"empty":   s.Publish(t.Context(), nil),
					"add":     s.Add(t.Context(), "b"),
					"clear":   s.Clear(t.Context()),
				} {
					var partly *replset.WriteError
					if !errors.As(err, &partly) || len(partly.Failed) != len(foreign) {
						t.Fatalf("%s: got %v, want %d slots named", what, err, len(foreign))
					}
					for _, f := range partly.Failed {
						var e *replset.ForeignKeyError
						if !errors.As(f, &e) || e.Key != foreign[f.Slot] {
							t.Errorf("%s: slot %d: got %v, want a *ForeignKeyError for %q", what, f.Slot, f.Err, foreign[f.Slot])
						}
					}
				}
				if list(do(t, b, "SMEMBERS", key(5)), nil) != `["theirs"]` || do(t, b, "GET", key(11)) != "theirs" ||
					do(t, b, "GET", key(17)+stampSuffix) != "theirs" || do(t, b, "HGET", key(23)+stampSuffix, "f") != "theirs" || do(t, b, "ZCARD", key(29)) != int64(1) {
					t.Error("a foreign key was changed")
				}
				adopting := newSet(t, rung.wrap(b), replset.Options{Slots: slots, Adopt: true})
				publish(t, adopting, "a")
				wantReplicas(t, b, s, slots, "a")
			})
		})
	}
}

// After a Clear the place is free for others: a set of someone else's that
// stands there by then is not ours, though our stamp still is.
func TestForeignKeyAfterClear(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	for _, rung := range rungs {
		t.Run(strings.ReplaceAll(rung.name, " ", "-"), func(t *testing.T) {
			eachClient(t, c, func(t *testing.T, b replset.Backend) {
				slots := some(48)
				s := newSet(t, rung.wrap(b), replset.Options{Slots: slots})
				publish(t, s, "a")
				if err := s.Clear(t.Context()); err != nil {
					t.Fatal(err)
				}
				theirs := slotmap.KeyForSlot(s.Name(), slots[20])
				do(t, b, "SADD", theirs, "theirs")
				for what, err := range map[string]error{
					"publish": s.Publish(t.Context(), []string{"b"}), "publish empty": s.Publish(t.Context(), nil), "clear": s.Clear(t.Context()),
				} {
					var partly *replset.WriteError
					var foreign *replset.ForeignKeyError
					if !errors.As(err, &partly) || len(partly.Failed) != 1 || partly.Failed[0].Slot != slots[20] || !errors.As(err, &foreign) {
						t.Errorf("%s: got %v, want slot %d named alone, with a *ForeignKeyError", what, err, slots[20])
					}
				}
				if got := list(do(t, b, "SMEMBERS", theirs), nil); got != `["theirs"]` {
					t.Errorf("the foreign set now holds %s", got)
				}
			})
		})
	}
}
