package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// Every read gives what the server's own command gives over the same members
// in a set beside it.
func TestReads(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		ctx := t.Context()
		s := newSet(t, b, replset.Options{Slots: some(64)})
		members := []string{"a", "b", "c", "", "\x00\xff"}
		publish(t, s, members...)
		for _, slot := range some(64)[:9] {
			subs, extra := slotmap.KeyForSlot(name(t)+"subs", slot), slotmap.KeyForSlot(name(t)+"extra", slot)
			plain, into := slotmap.KeyForSlot(name(t)+"plain", slot), slotmap.KeyForSlot(name(t)+"into", slot)
			do(t, b, append([]string{"SADD", plain}, members...)...)
			do(t, b, "SADD", subs, "a", "", "x", "\x00\xff")
			do(t, b, "SADD", extra, "a", "", "y")
			server := func(cmd ...string) string { return list(do(t, b, cmd...), nil) }
			for _, check := range []struct{ what, got, want string }{
				{"Intersect", strs(s.Intersect(ctx, subs)), server("SINTER", subs, plain)},
				{"Intersect, extra key", strs(s.Intersect(ctx, subs, extra)), server("SINTER", subs, extra, plain)},
				{"Intersect, missing key", strs(s.Intersect(ctx, subs+"none")), "[]"},
				{"Without", strs(s.Without(ctx, subs)), server("SDIFF", subs, plain)},
				{"Members", strs(s.Members(ctx, subs)), server("SMEMBERS", plain)},
				{"Count", fmt.Sprint(s.Count(ctx, subs, 0)), fmt.Sprint(do(t, b, "EVAL", "return redis.call('SINTERCARD', 2, KEYS[1], KEYS[2])", "2", subs, plain)) + " <nil>"},
				{"Count, limit", fmt.Sprint(s.Count(ctx, subs, 2)), "2 <nil>"},
				{"Len", fmt.Sprint(s.Len(ctx, subs)), fmt.Sprint(len(members), " <nil>")},
				{"Contains", fmt.Sprint(s.Contains(ctx, subs, "\x00\xff")), "true <nil>"},
				{"ContainsEach", fmt.Sprint(s.ContainsEach(ctx, subs, "x", "", "a")), "[false true true] <nil>"},
				{"IntersectInto", fmt.Sprint(s.IntersectInto(ctx, into, subs)), "3 <nil>"},
				{"what it stored", server("SMEMBERS", into), server("SINTER", subs, plain)},
			} {
				if check.got != check.want {
					t.Errorf("slot %d: %s: got %s, want %s", slot, check.what, check.got, check.want)
				}
			}
		}
	})
}

func strs(members []string, err error) string {
	if err != nil {
		return err.Error()
	}
	return sorted(members)
}

func list(v any, err error) string {
	if err != nil {
		return err.Error()
	}
	var members []string
	for _, m := range v.([]any) {
		members = append(members, m.(string))
	}
	return sorted(members)
}

// The reason for all this: beside a replica the server intersects, inside
// scripts too; with one set for all it refuses.
func TestIntersectInsideAScript(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		const script = "return redis.call('SINTER', KEYS[1], KEYS[2])"
		s := newSet(t, b, replset.Options{Slots: some(16)})
		publish(t, s, "a", "b")
		for i, slot := range some(16) {
			subs := slotmap.KeyForSlot(fmt.Sprint(name(t), "subs", i), slot)
			do(t, b, "SADD", subs, "b", "x")
			v, err := b.Do(t.Context(), subs, []string{"EVAL", script, "2", subs, s.KeyFor(subs)})
			if list(v, err) != `["b"]` {
				t.Errorf("SINTER inside EVAL: got %s", list(v, err))
			}
			naive := s.Name()
			if slotmap.SameSlot(subs, naive) {
				continue
			}
			for _, cmd := range [][]string{{"EVAL", script, "2", subs, naive}, {"SINTER", subs, naive}} {
				if v, err := b.Do(t.Context(), subs, cmd); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT ") {
					t.Errorf("%s of one set for all: got %v, %v, want CROSSSLOT", cmd[0], v, err)
				}
			}
			var cross *slotmap.CrossSlotError
			if _, err := s.Intersect(t.Context(), subs, naive); !errors.As(err, &cross) {
				t.Errorf("Intersect with a key of another slot: %v, want a *slotmap.CrossSlotError", err)
			}
		}
	})
}

func TestMissingIsNotEmpty(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		s := newSet(t, b, replset.Options{Slots: some(16)})
		key := slotmap.KeyForSlot(name(t)+"subs", 0)
		do(t, b, "SADD", key, "a")
		into := slotmap.KeyForSlot(name(t)+"into", 0)
		do(t, b, "SET", into, "kept")
		check := func(when string, want error) {
			t.Helper()
			for what, read := range map[string]func(context.Context) error{
				"intersect": func(ctx context.Context) error { _, err := s.Intersect(ctx, key); return err },
				"without":   func(ctx context.Context) error { _, err := s.Without(ctx, key); return err },
				"count":     func(ctx context.Context) error { _, err := s.Count(ctx, key, 0); return err },
				"members":   func(ctx context.Context) error { _, err := s.Members(ctx, key); return err },
				"contains":  func(ctx context.Context) error { _, err := s.Contains(ctx, key, "a"); return err },
				"len":       func(ctx context.Context) error { _, err := s.Len(ctx, key); return err },
				"into": func(ctx context.Context) error {
					_, err := s.IntersectInto(ctx, into, key)
					if err != nil && do(t, b, "GET", into) != "kept" {
						t.Errorf("%s: IntersectInto failed and wrote its destination", when)
					}
					return err
				},
			} {
				if err := read(t.Context()); !errors.Is(err, want) {
					t.Errorf("%s: %s: got %v, want %v", when, what, err, want)
				}
			}
		}
		check("never published", replset.ErrReplicaMissing)
		publish(t, s, "a", "b")
		do(t, b, "DEL", s.KeyFor(key))
		check("replica deleted", replset.ErrReplicaMissing)
		publish(t, s, "a", "b")
		do(t, b, "DEL", s.KeyFor(key)+stampSuffix)
		check("stamp deleted", replset.ErrReplicaMissing)
		s2 := newSet(t, b, replset.Options{Slots: some(16), Adopt: true})
		publish(t, s2, "a", "b")
		do(t, b, "SREM", s.KeyFor(key), "b")
		check("a member lost", replset.ErrReplicaDrifted)
		if err := s.Clear(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("cleared", replset.ErrReplicaMissing)
		do(t, b, "SET", into, "")
		publish(t, s)
		check("published empty", nil)
	})
}
