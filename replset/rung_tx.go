package replset

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// txRung writes by transactions, for servers that refuse scripts. The order is
// checked just before a replica's transaction, not inside it; a lease on the
// home slot keeps other writers of this rung away meanwhile. What remains: a
// process that stalls between check and transaction for longer than the lease
// may put an older write over a newer one, which Verify finds.
type txRung struct {
	set   *Set
	token string
	held  flag // the lease was taken at some time
}

// leaseLife is how long a writer that died holds up the others.
const leaseLife = 10 * time.Second

// txAtOnce bounds the transactions in flight to one node.
const txAtOnce = 16

func (r *txRung) home(ctx context.Context, c *change) error {
	s := r.set
	replica := s.replicaKey(s.home)
	return s.patiently(ctx, s.opts.Patience, func() error {
		if err := r.hold(ctx); err != nil {
			return err
		}
		members := append(append([]string(nil), c.add...), c.remove...)
		ask := [][]string{{"GET", replica + stampSuffix}, {"SCARD", replica}, {"TIME"}}
		if c.kind == delta {
			ask = append(ask, append([]string{"SMISMEMBER", replica}, members...))
		}
		replies, err := s.backend.Tx(ctx, replica, ask)
		if err != nil {
			return err
		}
		if len(replies) != len(ask) {
			return unexpected(replies)
		}
		held, _, err := s.look(replica, replies[0], replies[1])
		if err != nil {
			return err
		}
		if c.floor != 0 && held.number != c.before.number {
			return errMovedOn
		}
		now, err := serverTime(replies[2])
		if err != nil {
			return err
		}
		after := stamp{number: max(held.number+1, c.floor+1, now), count: c.count, digest: c.digest}
		if c.kind == delta {
			if err := s.proven(replica, replies[0], replies[1]); err != nil {
				return err
			}
			if after.count, after.digest, err = effect(c, members, held, replies[3]); err != nil {
				return err
			}
		}
		c.before, c.number, c.count, c.digest = held, after.number, after.count, after.digest
		return r.apply(ctx, c, replica)
	})
}

// effect works out a delta's result from what the replica holds of its members.
func effect(c *change, members []string, held stamp, isMember any) (count int, digest uint64, err error) {
	list, ok := isMember.([]any)
	if !ok || len(list) != len(members) {
		return 0, 0, unexpected(isMember)
	}
	count, digest = held.count, held.digest
	for i, m := range members {
		in, err := asInt(list[i])
		switch {
		case err != nil:
			return 0, 0, err
		case i < len(c.add) && in == 0:
			count, digest = count+1, digest+hashOf(m)
		case i >= len(c.add) && in == 1:
			count, digest = count-1, digest-hashOf(m)
		}
	}
	return count, digest & digestMask, nil
}

// txSteps takes one change to one node's slots.
type txSteps struct {
	*txRung
	c *change
}

func (t txSteps) end(context.Context) {} // the lease is the whole write's

func (t txSteps) step(ctx context.Context, slots []uint16) []error {
	r, c, s := t.txRung, t.c, t.set
	outcomes := make([]error, len(slots))
	if err := r.hold(ctx); err != nil {
		for i := range outcomes {
			outcomes[i] = err
		}
		return outcomes
	}
	keys, cmds := make([]string, 0, 2*len(slots)), make([][]string, 0, 2*len(slots))
	for _, slot := range slots {
		replica := s.replicaKey(slot)
		keys = append(keys, replica, replica)
		cmds = append(cmds, []string{"GET", replica + stampSuffix}, []string{"SCARD", replica})
	}
	replies := s.backend.Pipeline(ctx, keys, cmds)

	var wg sync.WaitGroup
	free := make(chan struct{}, txAtOnce)
	for i := range slots {
		replica := keys[2*i]
		held, size, err := s.look(replica, replies[2*i], replies[2*i+1])
		switch {
		case err != nil:
			outcomes[i] = err
		case held.number > c.number:
			outcomes[i] = newerError(held.number)
		case c.kind == delta && held.number == c.number && size == int64(c.count):
			// done by an earlier attempt
		case c.kind == delta && (held.number != c.before.number || size != int64(held.count)):
			outcomes[i] = errBehind
		default:
			free <- struct{}{}
			wg.Go(func() {
				defer func() { <-free }()
				outcomes[i] = r.apply(ctx, c, replica)
			})
		}
	}
	wg.Wait()
	return outcomes
}

// look reads what stands at a replica's place, and refuses what is not ours.
func (s *Set) look(replica string, stampReply, sizeReply any) (held stamp, size int64, err error) {
	held, err = readStamp(replica+stampSuffix, stampReply)
	if err != nil && !s.adopts(err) {
		return held, 0, err
	}
	if err != nil {
		held = stamp{count: cleared}
	}
	size, err = asInt(sizeReply)
	if err != nil && code(err) == "WRONGTYPE" {
		size, err = wrongSize, nil
	}
	// A stamp marks the place as ours, whatever stands there now.
	if err == nil && held.count == cleared && size != 0 && !s.opts.Adopt {
		err = &ForeignKeyError{Key: replica}
	}
	return held, size, err
}

// wrongSize stands for the size of a key that is no set; no stamp's count fits.
const wrongSize = -2

// apply changes one replica and its stamp in one transaction.
func (r *txRung) apply(ctx context.Context, c *change, replica string) error {
	var cmds [][]string
	if c.kind != delta {
		cmds = append(cmds, []string{"DEL", replica})
	}
	if len(c.add) > 0 {
		cmds = append(cmds, append([]string{"SADD", replica}, c.add...))
	}
	if len(c.remove) > 0 {
		cmds = append(cmds, append([]string{"SREM", replica}, c.remove...))
	}
	set := []string{"SET", replica + stampSuffix, c.stamp().String()}
	if c.kind == clearing {
		set = append(set, "PX", clearedLife)
	}
	return firstError(r.set.backend.Tx(ctx, replica, append(cmds, set)))
}

// hold takes the lease, or prolongs it. The two commands are not one step: see
// the type's comment.
func (r *txRung) hold(ctx context.Context) error {
	key, life := r.leaseKey(), fmt.Sprint(leaseLife.Milliseconds())
	v, err := r.set.backend.Do(ctx, key, []string{"GET", key})
	if err != nil {
		return err
	}
	switch v {
	case r.token:
		_, err = r.set.backend.Do(ctx, key, []string{"PEXPIRE", key, life})
		return err
	case nil:
		v, err = r.set.backend.Do(ctx, key, []string{"SET", key, r.token, "NX", "PX", life})
		if err == nil && v == nil {
			return leased(key)
		}
		r.held.set()
		return err
	}
	return leased(key)
}

// leased says what stands in the way, since it may be what a writer left behind
// that died, or that was not let to give it back.
func leased(key string) error {
	return fmt.Errorf("%w: another writer has the lease %s, or left it less than %v ago", ErrContended, key, leaseLife)
}

func (r *txRung) end(ctx context.Context) {
	if !r.held.isSet() {
		return
	}
	key := r.leaseKey()
	// A lease that cannot be given back ends by itself, and holds others up till then.
	_ = r.set.patiently(ctx, time.Second, func() error {
		v, err := r.set.backend.Do(ctx, key, []string{"GET", key})
		if err == nil && v == r.token {
			// The right to prolong a lease is enough to end it, also where DEL is refused.
			_, err = r.set.backend.Do(ctx, key, []string{"PEXPIRE", key, "0"})
		}
		return err
	})
}

func (r *txRung) leaseKey() string { return r.set.replicaKey(r.set.home) + leaseSuffix }

// serverTime is TIME's reply in microseconds.
func serverTime(v any) (int64, error) {
	parts, err := asStrings(v)
	if err != nil || len(parts) != 2 {
		return 0, unexpected(v)
	}
	var sec, usec int64
	if _, err := fmt.Sscan(parts[0]+" "+parts[1], &sec, &usec); err != nil {
		return 0, fmt.Errorf("%w: TIME says %q", errUnexpected, parts)
	}
	return sec*1_000_000 + usec, nil
}
