package replset

import (
	"context"
	"fmt"
	"strconv"
)

// Scored is a member of a sorted set.
type Scored struct {
	Member string
	Score  float64
}

// IntersectScored returns the members of the sharded sorted set at key that are
// also in this set, with their scores as they are in key, lowest first (ZINTER).
func (s *Set) IntersectScored(ctx context.Context, key string) ([]Scored, error) {
	return s.scored(ctx, "intersect scored", key, true, func(replica string) []string {
		return []string{"ZINTER", "2", key, replica, "WEIGHTS", "1", "0", "WITHSCORES"}
	})
}

// WithoutScored returns the members of the sharded sorted set at key that are
// not in this set, with their scores, lowest first (ZDIFF).
func (s *Set) WithoutScored(ctx context.Context, key string) ([]Scored, error) {
	return s.scored(ctx, "without scored", key, false, func(replica string) []string {
		return []string{"ZDIFF", "2", key, replica, "WITHSCORES"}
	})
}

// CountScored is the size of IntersectScored(key), up to limit if it is above 0
// (ZINTERCARD).
func (s *Set) CountScored(ctx context.Context, key string, limit int) (int, error) {
	return s.count(ctx, "count scored", key, limit, "ZINTERCARD", []string{"ZRANGE", key, "0", "-1"})
}

func (s *Set) scored(ctx context.Context, op, key string, in bool, command func(replica string) []string) ([]Scored, error) {
	replies, err := ask(ctx, question{
		op: op, key: key, sets: []*Set{s},
		commands: func(replicas []string) [][]string { return [][]string{command(replicas[0])} },
		whole:    [][]string{{"ZRANGE", key, "0", "-1", "WITHSCORES"}},
		apart: func(contents []content, whole []any) ([]any, error) {
			all, err := asScored(whole[0])
			if err != nil {
				return nil, err
			}
			kept := []any{}
			for _, m := range all {
				if contents[0].has(m.Member) == in {
					kept = append(kept, m.Member, strconv.FormatFloat(m.Score, 'g', -1, 64))
				}
			}
			return []any{kept}, nil
		},
	})
	if err != nil {
		return nil, err
	}
	members, err := asScored(replies[0])
	return members, slotError(op, key, err)
}

// asScored reads WITHSCORES: a flat list in RESP2, a list of pairs where a
// backend passes RESP3's nesting on.
func asScored(v any) ([]Scored, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, unexpected(v)
	}
	flat := make([]any, 0, len(list))
	for _, e := range list {
		if pair, nested := e.([]any); nested {
			flat = append(flat, pair...)
		} else {
			flat = append(flat, e)
		}
	}
	texts, err := asStrings(flat)
	if err != nil || len(texts)%2 != 0 {
		return nil, unexpected(v)
	}
	out := make([]Scored, len(texts)/2)
	for i := range out {
		out[i].Member = texts[2*i]
		if out[i].Score, err = strconv.ParseFloat(texts[2*i+1], 64); err != nil {
			return nil, fmt.Errorf("%w: score %q", errUnexpected, texts[2*i+1])
		}
	}
	return out, nil
}
