package replset

import (
	"context"
	"fmt"
	"strconv"

	"github.com/shardkit/shardkit/slotmap"
)

// Intersect returns the members of the sharded set at key, and of every extra
// key, that are also in this set (SINTER), in no order. All keys must share
// key's slot, else the error is a *slotmap.CrossSlotError and nothing is sent.
// A missing key is an empty set, as in Redis.
//
// While the slot moves to another master (a legacy reshard), servers refuse
// commands with several keys. A read waits for 0.1 s, and then reads the keys
// one by one and works the answer out here: right for each key, but not of one
// moment. That holds for every read but those that store.
func (s *Set) Intersect(ctx context.Context, key string, extra ...string) ([]string, error) {
	const op = "intersect"
	keys := append([]string{key}, extra...)
	if err := sameSlot(op, keys); err != nil {
		return nil, err
	}
	replies, err := ask(ctx, question{
		op: op, key: key, sets: []*Set{s},
		commands: func(replicas []string) [][]string {
			return [][]string{words("SINTER", keys, replicas)}
		},
		whole: each("SMEMBERS", keys),
		apart: func(contents []content, whole []any) ([]any, error) {
			both, err := intersection(contents, whole)
			return []any{both}, err
		},
	})
	return stringsOf(op, key, replies, err)
}

// Without returns the members of the sharded set at key that are not in this
// set (SDIFF), in no order.
func (s *Set) Without(ctx context.Context, key string) ([]string, error) {
	const op = "without"
	replies, err := ask(ctx, question{
		op: op, key: key, sets: []*Set{s},
		commands: func(replicas []string) [][]string {
			return [][]string{words("SDIFF", []string{key}, replicas)}
		},
		whole: each("SMEMBERS", []string{key}),
		apart: func(contents []content, whole []any) ([]any, error) {
			rest, err := difference(contents, whole)
			return []any{rest}, err
		},
	})
	return stringsOf(op, key, replies, err)
}

// Count is the size of Intersect(key), without moving the members (SINTERCARD,
// Redis 7.0 or later). With limit above 0 the server stops counting there.
func (s *Set) Count(ctx context.Context, key string, limit int) (int, error) {
	return s.count(ctx, "count", key, limit, "SINTERCARD", []string{"SMEMBERS", key})
}

func (s *Set) count(ctx context.Context, op, key string, limit int, command string, whole []string) (int, error) {
	if limit < 0 {
		return 0, fmt.Errorf("replset: %s: limit is %d: give 0 for no limit, or a positive number", op, limit)
	}
	replies, err := ask(ctx, question{
		op: op, key: key, sets: []*Set{s},
		commands: func(replicas []string) [][]string {
			cmd := words(command, []string{"2", key}, replicas)
			if limit > 0 {
				cmd = append(cmd, "LIMIT", strconv.Itoa(limit))
			}
			return [][]string{cmd}
		},
		whole: [][]string{whole},
		apart: func(contents []content, whole []any) ([]any, error) {
			both, err := intersection(contents, whole)
			n := len(both)
			if limit > 0 {
				n = min(n, limit)
			}
			return []any{int64(n)}, err
		},
	})
	return intOf(op, key, replies, err)
}

// Members returns the whole set, read from the replica in key's slot.
func (s *Set) Members(ctx context.Context, key string) ([]string, error) {
	const op = "members"
	replies, err := s.about(ctx, op, key, "SMEMBERS", nil, func(c content) any {
		list := make([]any, 0, len(c))
		for m := range c {
			list = append(list, m)
		}
		return list
	})
	return stringsOf(op, key, replies, err)
}

// Len is the size of the set, read from the replica in key's slot.
func (s *Set) Len(ctx context.Context, key string) (int, error) {
	const op = "len"
	replies, err := s.about(ctx, op, key, "SCARD", nil, func(c content) any { return int64(len(c)) })
	return intOf(op, key, replies, err)
}

// Contains reports whether member is in the set, by the replica in key's slot.
func (s *Set) Contains(ctx context.Context, key, member string) (bool, error) {
	in, err := s.ContainsEach(ctx, key, member)
	if err != nil {
		return false, err
	}
	return in[0], nil
}

// ContainsEach reports for each member whether it is in the set, by the replica
// in key's slot, in one round trip. ContainsMany spreads the work.
func (s *Set) ContainsEach(ctx context.Context, key string, members ...string) ([]bool, error) {
	if len(members) == 0 {
		return nil, nil
	}
	const op = "contains"
	replies, err := s.about(ctx, op, key, "SMISMEMBER", members, func(c content) any {
		list := make([]any, len(members))
		for i, m := range members {
			list[i] = int64(0)
			if c.has(m) {
				list[i] = int64(1)
			}
		}
		return list
	})
	if err != nil {
		return nil, err
	}
	list, ok := replies[0].([]any)
	if !ok || len(list) != len(members) {
		return nil, slotError(op, key, unexpected(replies[0]))
	}
	in := make([]bool, len(list))
	for i, e := range list {
		n, err := asInt(e)
		if err != nil {
			return nil, slotError(op, key, err)
		}
		in[i] = n == 1
	}
	return in, nil
}

// about asks one command of the replica alone.
func (s *Set) about(ctx context.Context, op, key, command string, args []string, apart func(content) any) ([]any, error) {
	return ask(ctx, question{
		op: op, key: key, sets: []*Set{s},
		commands: func(replicas []string) [][]string { return [][]string{words(command, replicas, args)} },
		apart:    func(contents []content, _ []any) ([]any, error) { return []any{apart(contents[0])}, nil },
	})
}

// SInter is Intersect, by its Redis name.
func (s *Set) SInter(ctx context.Context, key string, extra ...string) ([]string, error) {
	return s.Intersect(ctx, key, extra...)
}

// SInterCard is Count, by its Redis name.
func (s *Set) SInterCard(ctx context.Context, key string, limit int) (int, error) {
	return s.Count(ctx, key, limit)
}

// SDiff is Without, by its Redis name.
func (s *Set) SDiff(ctx context.Context, key string) ([]string, error) { return s.Without(ctx, key) }

// SInterStore is IntersectInto, by its Redis name.
func (s *Set) SInterStore(ctx context.Context, dest, key string, extra ...string) (int, error) {
	return s.IntersectInto(ctx, dest, key, extra...)
}

func sameSlot(op string, keys []string) error {
	if len(keys) < 2 {
		return nil
	}
	if err := slotmap.CheckSameSlot(keys...); err != nil {
		return fmt.Errorf("replset: %s: %w", op, err)
	}
	return nil
}

// words is one command: a name and two lists of arguments.
func words(command string, a, b []string) []string {
	cmd := make([]string, 0, 1+len(a)+len(b)+2)
	return append(append(append(cmd, command), a...), b...)
}

// each is the same command for each key.
func each(command string, keys []string) [][]string {
	cmds := make([][]string, len(keys))
	for i, key := range keys {
		cmds[i] = []string{command, key}
	}
	return cmds
}

func stringsOf(op, key string, replies []any, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	members, err := asStrings(replies[0])
	return members, slotError(op, key, err)
}

func intOf(op, key string, replies []any, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := asInt(replies[0])
	return int(n), slotError(op, key, err)
}

// intersection is those members of the first whole key that are in all the
// others and in all the sets.
func intersection(contents []content, whole []any) ([]any, error) {
	all := contents
	for _, v := range whole[1:] {
		members, err := asStrings(v)
		if err != nil {
			return nil, err
		}
		other := make(content, len(members))
		for _, m := range members {
			other[m] = struct{}{}
		}
		all = append(all, other)
	}
	return keep(whole[0], func(m string) bool {
		for _, c := range all {
			if !c.has(m) {
				return false
			}
		}
		return true
	})
}

// difference is those members of the whole key that are in none of the sets.
func difference(contents []content, whole []any) ([]any, error) {
	return keep(whole[0], func(m string) bool {
		for _, c := range contents {
			if c.has(m) {
				return false
			}
		}
		return true
	})
}

func keep(v any, wanted func(string) bool) ([]any, error) {
	members, err := asStrings(v)
	if err != nil {
		return nil, err
	}
	kept := []any{}
	for _, m := range members {
		if wanted(m) {
			kept = append(kept, m)
		}
	}
	return kept, nil
}
