package replset

import (
	"context"
	"crypto/rand"
	"slices"
)

// IntersectInto stores Intersect(key, extra...) in dest and returns its size
// (SINTERSTORE): an empty result deletes dest. dest must share key's slot. If
// the replica is missing, dest is left as it was. While the slot moves it waits,
// and then fails with ErrSlotMoving.
//
// Where the servers refuse scripts, the result is stored under a temporary key
// first and renamed once the replica has been proved, so another client may
// write to key between the two.
func (s *Set) IntersectInto(ctx context.Context, dest, key string, extra ...string) (int, error) {
	return s.into(ctx, "intersect into", "SINTERSTORE", dest, append([]string{key}, extra...))
}

// IntersectScoredInto stores IntersectScored(key), with its scores, in dest
// (ZINTERSTORE). Otherwise it is like IntersectInto.
func (s *Set) IntersectScoredInto(ctx context.Context, dest, key string) (int, error) {
	return s.into(ctx, "intersect scored into", "ZINTERSTORE", dest, []string{key})
}

func (s *Set) into(ctx context.Context, op, command, dest string, keys []string) (int, error) {
	if err := sameSlot(op, append([]string{dest}, keys...)); err != nil {
		return 0, err
	}
	key := keys[0]
	var n int64
	err := s.patiently(ctx, s.opts.ReadPatience, func() (err error) {
		if !s.noEval.isSet() {
			n, err = s.intoByScript(ctx, command, dest, keys)
			if err == nil || !scriptsRefused(err) {
				return err
			}
			s.noEval.set()
		}
		n, err = s.intoByRename(ctx, command, dest, keys)
		return err
	})
	if err != nil && code(err) == "TRYAGAIN" {
		err = join(ErrSlotMoving, err)
	}
	return int(n), slotError(op, key, s.unowned(ctx, key, err))
}

func (s *Set) intoByScript(ctx context.Context, command, dest string, keys []string) (int64, error) {
	replica := s.KeyFor(keys[0])
	declared := slices.Concat([]string{dest, replica, replica + stampSuffix}, keys)
	v, err := s.eval(ctx, keys[0], intoScript, declared, []string{command})
	if err != nil {
		return 0, err
	}
	list, ok := v.([]any)
	if !ok || len(list) != 3 {
		return 0, unexpected(v)
	}
	if err := s.proven(replica, list[0], list[1]); err != nil {
		return 0, err
	}
	return asInt(list[2])
}

func (s *Set) intoByRename(ctx context.Context, command, dest string, keys []string) (int64, error) {
	key, replica := keys[0], s.KeyFor(keys[0])
	// A key of a caller that died must not stay: it lives ten seconds.
	tmp := replica + tmpSuffix + rand.Text()
	store := slices.Concat([]string{command, tmp}, keys, []string{replica})
	if command == "ZINTERSTORE" {
		store = []string{command, tmp, "2", key, replica, "WEIGHTS", "1", "0"}
	}
	replies, err := s.backend.Tx(ctx, key, [][]string{
		{"GET", replica + stampSuffix}, {"SCARD", replica}, store, {"PEXPIRE", tmp, "10000"},
	})
	if err != nil {
		return 0, err
	}
	if len(replies) != 4 {
		return 0, unexpected(replies)
	}
	if err := s.proven(replica, replies[0], replies[1]); err != nil {
		_, _ = s.backend.Do(ctx, key, []string{"DEL", tmp}) // its short life is the second way out
		return 0, err
	}
	n, err := asInt(replies[2])
	if err != nil {
		return 0, err
	}
	if n == 0 {
		_, err = s.backend.Do(ctx, key, []string{"DEL", dest})
		return 0, err
	}
	return n, firstError(s.backend.Tx(ctx, key, [][]string{{"PERSIST", tmp}, {"RENAME", tmp, dest}}))
}
