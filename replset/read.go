package replset

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"

	"github.com/shardkit/shardkit/slotmap"
)

// Every read sends its question and the proof that the replica stands in one
// transaction, so no write of another process comes between the two: a missing
// replica is ErrReplicaMissing, never an empty answer.

// Intersect returns the members of the sharded set at key, and of every extra
// key, that are also in this set (SINTER), in no order. All keys must share
// key's slot, else the error is a *slotmap.CrossSlotError and nothing is sent.
// A missing key is an empty set, as in Redis.
func (s *Set) Intersect(ctx context.Context, key string, extra ...string) ([]string, error) {
	return s.members(ctx, "intersect", key, extra, func(replica string) []string {
		return append(operands("SINTER", key, extra), replica)
	})
}

// Without returns the members of the sharded set at key that are not in this
// set (SDIFF), in no order.
func (s *Set) Without(ctx context.Context, key string) ([]string, error) {
	return s.members(ctx, "without", key, nil, func(replica string) []string {
		return []string{"SDIFF", key, replica}
	})
}

// Count is the size of Intersect(key), without moving the members (SINTERCARD,
// Redis 7.0 or later). With limit above 0 the server stops counting there.
func (s *Set) Count(ctx context.Context, key string, limit int) (int, error) {
	if limit < 0 {
		return 0, fmt.Errorf("replset: count: limit is %d: give 0 for no limit, or a positive number", limit)
	}
	v, err := s.read(ctx, "count", key, func(replica string) []string {
		cmd := []string{"SINTERCARD", "2", key, replica}
		if limit > 0 {
			cmd = append(cmd, "LIMIT", strconv.Itoa(limit))
		}
		return cmd
	})
	if err != nil {
		return 0, err
	}
	n, err := asInt(v)
	return int(n), slotError("count", key, err)
}

// Members returns the whole set, read from the replica in key's slot.
func (s *Set) Members(ctx context.Context, key string) ([]string, error) {
	return s.members(ctx, "members", key, nil, func(replica string) []string {
		return []string{"SMEMBERS", replica}
	})
}

// Len is the size of the set, read from the replica in key's slot.
func (s *Set) Len(ctx context.Context, key string) (int, error) {
	v, err := s.read(ctx, "len", key, func(replica string) []string { return []string{"SCARD", replica} })
	if err != nil {
		return 0, err
	}
	n, err := asInt(v)
	return int(n), slotError("len", key, err)
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
// in key's slot, in one round trip.
func (s *Set) ContainsEach(ctx context.Context, key string, members ...string) ([]bool, error) {
	if len(members) == 0 {
		return nil, nil
	}
	v, err := s.read(ctx, "contains", key, func(replica string) []string {
		return append([]string{"SMISMEMBER", replica}, members...)
	})
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok || len(list) != len(members) {
		return nil, slotError("contains", key, unexpected(v))
	}
	in := make([]bool, len(list))
	for i, e := range list {
		n, err := asInt(e)
		if err != nil {
			return nil, slotError("contains", key, err)
		}
		in[i] = n == 1
	}
	return in, nil
}

// IntersectInto stores Intersect(key, extra...) in dest and returns its size
// (SINTERSTORE): an empty result deletes dest. dest must share key's slot. If
// the replica is missing, dest is left as it was.
//
// Where the servers refuse scripts, the result is stored under a temporary key
// first and renamed once the replica has been proved, so another client may
// write to key between the two.
func (s *Set) IntersectInto(ctx context.Context, dest, key string, extra ...string) (int, error) {
	const op = "intersect into"
	if err := slotmap.CheckSameSlot(append([]string{dest, key}, extra...)...); err != nil {
		return 0, fmt.Errorf("replset: %s: %w", op, err)
	}
	var n int64
	err := s.patiently(ctx, s.opts.ReadPatience, func() error {
		var err error
		if !s.noEval.isSet() {
			n, err = s.intoByScript(ctx, dest, key, extra)
			if err == nil || !scriptsRefused(err) {
				return err
			}
			s.noEval.set()
		}
		n, err = s.intoByRename(ctx, dest, key, extra)
		return err
	})
	return int(n), slotError(op, key, err)
}

func (s *Set) intoByScript(ctx context.Context, dest, key string, extra []string) (int64, error) {
	replica := s.KeyFor(key)
	keys := append([]string{dest, replica, replica + stampSuffix, key}, extra...)
	v, err := s.eval(ctx, key, intoScript, keys, []string{"SINTERSTORE"})
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

func (s *Set) intoByRename(ctx context.Context, dest, key string, extra []string) (int64, error) {
	replica := s.KeyFor(key)
	// A key of a caller that died must not stay: it lives ten seconds.
	tmp := replica + tmpSuffix + rand.Text()
	replies, err := s.backend.Tx(ctx, key, [][]string{
		{"GET", replica + stampSuffix},
		{"SCARD", replica},
		append(operands("SINTERSTORE", tmp, append([]string{key}, extra...)), replica),
		{"PEXPIRE", tmp, "10000"},
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
	replies, err = s.backend.Tx(ctx, key, [][]string{{"PERSIST", tmp}, {"RENAME", tmp, dest}})
	return n, firstError(replies, err)
}

// members is read for a question whose answer is a list of members.
func (s *Set) members(ctx context.Context, op, key string, extra []string, question func(replica string) []string) ([]string, error) {
	if len(extra) > 0 {
		if err := slotmap.CheckSameSlot(append([]string{key}, extra...)...); err != nil {
			return nil, fmt.Errorf("replset: %s: %w", op, err)
		}
	}
	v, err := s.read(ctx, op, key, question)
	if err != nil {
		return nil, err
	}
	members, err := asStrings(v)
	return members, slotError(op, key, err)
}

// read asks one question of the replica in key's slot, with the proof.
func (s *Set) read(ctx context.Context, op, key string, question func(replica string) []string) (any, error) {
	replica := s.KeyFor(key)
	cmds := [][]string{{"GET", replica + stampSuffix}, {"SCARD", replica}, question(replica)}
	var answer any
	err := s.patiently(ctx, s.opts.ReadPatience, func() error {
		replies, err := s.backend.Tx(ctx, key, cmds)
		if err != nil {
			return err
		}
		if len(replies) != len(cmds) {
			return unexpected(replies)
		}
		if err := s.proven(replica, replies[0], replies[1]); err != nil {
			return err
		}
		answer = replies[2]
		if err, failed := answer.(error); failed {
			return err
		}
		return nil
	})
	return answer, slotError(op, key, err)
}

// proven tells from the stamp and the size whether the replica stands.
func (s *Set) proven(replica string, stampReply, sizeReply any) error {
	st, err := readStamp(replica+stampSuffix, stampReply)
	if err != nil {
		return err
	}
	size, err := asInt(sizeReply)
	switch {
	case err != nil && code(err) == "WRONGTYPE":
		return &ForeignKeyError{Key: replica}
	case err != nil:
		return err
	case st.count == cleared, size == 0 && st.count > 0:
		return fmt.Errorf("%w: set %q: publish it, or reconcile this slot", ErrReplicaMissing, s.name)
	case int(size) != st.count:
		return fmt.Errorf("%w: set %q has %d members here, %d were published: publish again, or reconcile this slot", ErrReplicaDrifted, s.name, size, st.count)
	}
	return nil
}

// readStamp reads the reply to GET of a stamp's key; a missing one has the
// number 0 and counts as cleared.
func readStamp(key string, reply any) (stamp, error) {
	switch v := reply.(type) {
	case nil:
		return stamp{count: cleared}, nil
	case string:
		if st, ok := parseStamp(v); ok {
			return st, nil
		}
		return stamp{}, &ForeignKeyError{Key: key}
	case error:
		if code(v) == "WRONGTYPE" {
			return stamp{}, &ForeignKeyError{Key: key}
		}
		return stamp{}, v
	}
	return stamp{}, unexpected(reply)
}

func operands(command, key string, extra []string) []string {
	cmd := make([]string, 0, len(extra)+3)
	return append(append(cmd, command, key), extra...)
}

// firstError is what went wrong with a transaction, if anything did: its own
// error, or that of its first command to fail.
func firstError(replies []any, err error) error {
	for _, v := range replies {
		if failed, ok := v.(error); ok && err == nil {
			err = failed
		}
	}
	return err
}

func asInt(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case error:
		return 0, v
	}
	return 0, unexpected(v)
}

func asStrings(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, unexpected(v)
	}
	out := make([]string, len(list))
	for i, e := range list {
		if out[i], ok = e.(string); !ok {
			return nil, unexpected(e)
		}
	}
	return out, nil
}

var errUnexpected = errors.New("unexpected reply: the backend does not follow its contract")

func unexpected(v any) error {
	if err, ok := v.(error); ok {
		return err
	}
	return fmt.Errorf("%w (%T)", errUnexpected, v)
}
