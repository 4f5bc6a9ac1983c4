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

// Reads of several sets, of sorted sets, of many candidates, and by Redis's
// names, against the server's own commands over the same members.
func TestMoreReads(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		ctx := t.Context()
		slots := some(16)
		set := func(suffix string, members ...string) *replset.Set {
			s, err := replset.New(b, name(t)+suffix, &replset.Options{Slots: slots})
			if err != nil {
				t.Fatal(err)
			}
			publish(t, s, members...)
			return s
		}
		active, eu, blocked := set("active", "a", "b", "c", "d"), set("eu", "a", "b", "x"), set("blocked", "b", "y")
		for _, slot := range slots[:5] {
			subs, scores := slotmap.KeyForSlot(name(t)+"subs", slot), slotmap.KeyForSlot(name(t)+"scores", slot)
			into := slotmap.KeyForSlot(name(t)+"into", slot)
			do(t, b, "SADD", subs, "a", "b", "c", "x", "z")
			do(t, b, "ZADD", scores, "3.5", "a", "1", "b", "-2", "z", "inf", "c")
			for _, check := range []struct{ what, got, want string }{
				{"Filter in", strs(replset.Filter(ctx, subs, []*replset.Set{active, eu}, nil)), `["a" "b"]`},
				{"Filter in, not in", strs(replset.Filter(ctx, subs, []*replset.Set{active, eu}, []*replset.Set{blocked})), `["a"]`},
				{"Filter not in", strs(replset.Filter(ctx, subs, nil, []*replset.Set{active, blocked})), `["x" "z"]`},
				{"SInter", strs(active.SInter(ctx, subs)), `["a" "b" "c"]`},
				{"SInterCard", fmt.Sprint(active.SInterCard(ctx, subs, 0)), "3 <nil>"},
				{"SDiff", strs(active.SDiff(ctx, subs)), `["x" "z"]`},
				{"SInterStore", fmt.Sprint(active.SInterStore(ctx, into, subs)), "3 <nil>"},
				{"IntersectScored", fmt.Sprint(active.IntersectScored(ctx, scores)), "[{b 1} {a 3.5} {c +Inf}] <nil>"},
				{"WithoutScored", fmt.Sprint(active.WithoutScored(ctx, scores)), "[{z -2}] <nil>"},
				{"CountScored", fmt.Sprint(active.CountScored(ctx, scores, 0)), "3 <nil>"},
				{"CountScored, limit", fmt.Sprint(active.CountScored(ctx, scores, 2)), "2 <nil>"},
				{"IntersectScoredInto", fmt.Sprint(active.IntersectScoredInto(ctx, into, scores)), "3 <nil>"},
				{"what it stored", fmt.Sprint(do(t, b, "ZRANGE", into, "0", "-1", "WITHSCORES")), "[b 1 a 3.5 c inf]"},
			} {
				if check.got != check.want {
					t.Errorf("slot %d: %s: got %s, want %s", slot, check.what, check.got, check.want)
				}
			}
		}

		candidates := make([]string, 5000)
		for i := range candidates {
			candidates[i] = fmt.Sprint("none", i)
		}
		candidates[0], candidates[1999], candidates[4999] = "a", "b", "d"
		in, err := active.ContainsMany(ctx, candidates)
		hits := ""
		for i, is := range in {
			if is {
				hits += fmt.Sprint(i, " ")
			}
		}
		if err != nil || hits != "0 1999 4999 " {
			t.Errorf("ContainsMany: got %s, %v", hits, err)
		}

		// A key in a slot without a replica is an error, and one of another slot too.
		near := slotmap.KeyForSlot("x", 12)
		if _, err := active.Intersect(ctx, near); !errors.Is(err, replset.ErrReplicaMissing) || !strings.Contains(err.Error(), "Options.Slots") {
			t.Errorf("a slot outside the subset: got %v", err)
		}
		if _, err := replset.Filter(ctx, near, []*replset.Set{active, eu}, nil); !errors.Is(err, replset.ErrReplicaMissing) {
			t.Errorf("Filter outside the subset: got %v", err)
		}
		if err := eu.Clear(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := replset.Filter(ctx, slotmap.KeyForSlot("x", slots[1]), []*replset.Set{active}, []*replset.Set{eu}); !errors.Is(err, replset.ErrReplicaMissing) {
			t.Errorf("Filter with a cleared set: got %v, want ErrReplicaMissing", err)
		}
	})
}

// While a slot is held with its keys on both sides, servers refuse every command
// with several keys. Reads answer all the same, and what stores says why it
// cannot.
func TestReadsOfASlotHeldHalfWay(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	const slot = 11111
	b := open(t, clients[0].name, c)
	opts := replset.Options{Slots: []uint16{slot}, ReadPatience: time.Second}
	s := newSet(t, b, opts)
	other, err := replset.New(b, name(t)+"other", &opts)
	if err != nil {
		t.Fatal(err)
	}
	publish(t, s, "a", "b", "c")
	publish(t, other, "b")
	subs, scores := slotmap.KeyForSlot(name(t)+"subs", slot), slotmap.KeyForSlot(name(t)+"scores", slot)
	do(t, b, "SADD", subs, "a", "b", "x")
	do(t, b, "ZADD", scores, "2", "a", "1", "b", "3", "x")

	owner, target := owners(t, c, slot)
	move, err := c.BeginMove(t.Context(), target, slot)
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(target.Addr(), ":")
	for _, key := range []string{subs, scores, slotmap.KeyForSlot(other.Name(), slot)} {
		if _, err := owner.Do(t.Context(), "MIGRATE", host, port, key, "0", "5000"); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("meanwhile", func(t *testing.T) {
		eachClient(t, c, func(t *testing.T, b replset.Backend) {
			t.Parallel() // most of the time they wait
			ctx := t.Context()
			s, err := replset.New(b, s.Name(), &opts)
			if err != nil {
				t.Fatal(err)
			}
			other, err := replset.New(b, other.Name(), &opts)
			if err != nil {
				t.Fatal(err)
			}
			for _, check := range []struct{ what, got, want string }{
				{"Intersect", strs(s.Intersect(ctx, subs)), `["a" "b"]`},
				{"Without", strs(s.Without(ctx, subs)), `["x"]`},
				{"Count", fmt.Sprint(s.Count(ctx, subs, 0)), "2 <nil>"},
				{"Count, limit", fmt.Sprint(s.Count(ctx, subs, 1)), "1 <nil>"},
				{"Members", strs(s.Members(ctx, subs)), `["a" "b" "c"]`},
				{"ContainsEach", fmt.Sprint(s.ContainsEach(ctx, subs, "x", "a")), "[false true] <nil>"},
				{"IntersectScored", fmt.Sprint(s.IntersectScored(ctx, scores)), "[{b 1} {a 2}] <nil>"},
				{"WithoutScored", fmt.Sprint(s.WithoutScored(ctx, scores)), "[{x 3}] <nil>"},
				{"CountScored", fmt.Sprint(s.CountScored(ctx, scores, 0)), "2 <nil>"},
				{"Filter", strs(replset.Filter(ctx, subs, []*replset.Set{s}, []*replset.Set{other})), `["a"]`},
			} {
				if check.got != check.want {
					t.Errorf("%s: got %s, want %s", check.what, check.got, check.want)
				}
			}
			into := slotmap.KeyForSlot(name(t)+"into", slot)
			if _, err := s.IntersectInto(ctx, into, subs); !errors.Is(err, replset.ErrSlotMoving) {
				t.Errorf("IntersectInto: got %v, want ErrSlotMoving", err)
			}
			if _, err := s.IntersectScoredInto(ctx, into, scores); !errors.Is(err, replset.ErrSlotMoving) {
				t.Errorf("IntersectScoredInto: got %v, want ErrSlotMoving", err)
			}
		})
	})
	if err := move.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := s.IntersectInto(t.Context(), slotmap.KeyForSlot(name(t)+"into", slot), subs); n != 2 || err != nil {
		t.Errorf("IntersectInto after the move: got %d, %v", n, err)
	}
	if err := c.MoveSlots(t.Context(), owner, slot); err != nil {
		t.Error(err)
	}
}
