package replset

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkit/shardkit/slotmap"
)

// ReplicaReader is what a Backend may do besides: Tx for commands that only
// read, on a server replica of the slot's master, or on the master where there
// is none. The rest of Backend's contract holds for it.
type ReplicaReader interface {
	ReadTx(ctx context.Context, key string, cmds [][]string) ([]any, error)
}

// question is a read of one or several sets beside a sharded key. It is sent
// with the proof that each set's replica stands, in one transaction, so that no
// write of another process comes between the two: a missing replica is
// ErrReplicaMissing, never an empty answer.
type question struct {
	op   string
	key  string
	sets []*Set

	// commands asks, given the replicas' keys, one per set.
	commands func(replicas []string) [][]string

	// whole names the sharded keys, and how to read them whole, for a slot that
	// is moving; apart then works out the commands' replies from the sets'
	// contents and those keys' replies.
	whole [][]string
	apart func(contents []content, whole []any) ([]any, error)
}

// movingWait is how long a read waits for a slot that is moving before it reads
// the keys one by one.
const movingWait = 100 * time.Millisecond

// ask returns the replies to the question's commands.
func ask(ctx context.Context, q question) ([]any, error) {
	s := q.sets[0]
	replicas := make([]string, len(q.sets))
	var cmds [][]string
	for i, set := range q.sets {
		if !set.slots.contains(slotmap.Slot(q.key)) {
			return nil, slotError(q.op, q.key, fmt.Errorf("%w: set %q is kept in %d slots only (Options.Slots)", ErrReplicaMissing, set.name, len(set.slots.list)))
		}
		replicas[i] = set.KeyFor(q.key)
		cmds = append(cmds, []string{"GET", replicas[i] + stampSuffix}, []string{"SCARD", replicas[i]})
	}
	cmds = append(cmds, q.commands(replicas)...)

	reader, fromReplica := s.backend.(ReplicaReader)
	fromReplica = fromReplica && s.opts.ReadReplicas
	var answer []any
	start := time.Now()
	err := s.patiently(ctx, s.opts.ReadPatience, func() (err error) {
		tx := s.backend.Tx
		if fromReplica {
			tx = reader.ReadTx
		}
		answer, err = askOnce(ctx, tx, q, replicas, cmds)
		if fromReplica && err != nil { // a late or lost copy: the master knows
			fromReplica = false
			answer, err = askOnce(ctx, s.backend.Tx, q, replicas, cmds)
		}
		if err != nil && code(err) == "TRYAGAIN" && time.Since(start) > movingWait {
			answer, err = q.askApart(ctx, replicas)
		}
		return err
	})
	return answer, slotError(q.op, q.key, s.unowned(ctx, q.key, err))
}

func askOnce(ctx context.Context, tx func(context.Context, string, [][]string) ([]any, error),
	q question, replicas []string, cmds [][]string,
) ([]any, error) {
	replies, err := tx(ctx, q.key, cmds)
	if err != nil {
		return nil, err
	}
	if len(replies) != len(cmds) {
		return nil, unexpected(replies)
	}
	for i, set := range q.sets {
		if err := set.proven(replicas[i], replies[2*i], replies[2*i+1]); err != nil {
			return nil, err
		}
	}
	answer := replies[2*len(q.sets):]
	return answer, firstError(answer, nil)
}

// content is a set's members.
type content map[string]struct{}

func (c content) has(m string) bool { _, in := c[m]; return in }

// askApart reads the keys one by one, which works while a slot moves, where a
// command with several keys does not. The answer is right for each key at the
// moment it was read, and these are moments apart; a replica whose content does
// not agree with its stamp is read again.
func (q question) askApart(ctx context.Context, replicas []string) ([]any, error) {
	backend := q.sets[0].backend
	contents := make([]content, len(q.sets))
	for i, set := range q.sets {
		v, err := backend.Do(ctx, q.key, []string{"GET", replicas[i] + stampSuffix})
		if err != nil {
			v = err
		}
		st, err := readStamp(replicas[i]+stampSuffix, v)
		if err != nil {
			return nil, err
		}
		if v, err = backend.Do(ctx, q.key, []string{"SMEMBERS", replicas[i]}); err != nil {
			return nil, err
		}
		members, err := asStrings(v)
		if err != nil {
			return nil, err
		}
		if st.count == cleared {
			return nil, fmt.Errorf("%w: set %q: publish it, or reconcile this slot", ErrReplicaMissing, set.name)
		}
		if len(members) != st.count || digestOf(members) != st.digest {
			return nil, errTorn
		}
		contents[i] = make(content, len(members))
		for _, m := range members {
			contents[i][m] = struct{}{}
		}
	}
	whole := make([]any, len(q.whole))
	for i, cmd := range q.whole {
		var err error
		if whole[i], err = backend.Do(ctx, q.key, cmd); err != nil {
			return nil, err
		}
	}
	return q.apart(contents, whole)
}

// errTorn: a write came between reading a stamp and reading its replica.
var errTorn = errors.New("the replica changed while it was read")

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
