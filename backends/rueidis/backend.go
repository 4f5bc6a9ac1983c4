package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// Backend sends the commands of a replicated set over a rueidis.Client. Its
// methods satisfy replset.Backend, whose documentation holds for them.
type Backend struct {
	client  rueidis.Client
	builder rueidis.Builder
	unkeyed rueidis.Completed // never sent: it lends its SetSlot to slotOf
	slots   slotMap
	nodes   atomic.Pointer[nodeSet]
	meeting atomic.Bool   // an introduction is under way
	aside   chan struct{} // connections to hidden nodes
	ids     sync.Map      // address -> id of nodes that were hidden
	multi   sync.Map      // addresses of nodes that accept MULTI from this user
}

// New returns a backend over the caller's client, which stays the caller's to
// close. It does no I/O. It returns an error because rueidis.NewClient hands out
// a client of a single node, without a word, where the one address it was given
// is not in cluster mode.
func New(client rueidis.Client) (*Backend, error) {
	if client == nil {
		return nil, errors.New("rueidisbackend: New: the client is nil")
	}
	if mode := client.Mode(); mode != rueidis.ClientModeCluster {
		return nil, fmt.Errorf("rueidisbackend: New: the client is in %s mode: give rueidis.NewClient the address of a node of a Redis Cluster (cluster-enabled yes), without ForceSingleClient and Sentinel", mode)
	}
	b := &Backend{client: client, builder: client.B(), aside: make(chan struct{}, asideAtOnce)}
	b.slots.table.Store(&slotTable{})
	b.unkeyed = b.bare("PING")
	return b, nil
}

// slotOf is key's slot, by rueidis's own arithmetic: a second one could differ.
func (b *Backend) slotOf(key string) uint16 {
	c := b.unkeyed.SetSlot(key)
	return c.Slot() % slotCount
}

// Do runs one command on the master that owns key's slot.
func (b *Backend) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if err := refuse(cmd); err != nil {
		return nil, err
	}
	v := b.whole(ctx, batch{key: key, cmds: [][]string{cmd}})[0]
	if err, failed := v.(error); failed {
		return nil, err
	}
	return shape(cmd, v), nil
}

// Tx runs the commands as one MULTI/EXEC. The cluster client's own DoMulti may
// follow a redirect of some commands without the others; this is one DoMulti of
// the node's client, which rueidis puts on one connection with nothing between.
func (b *Backend) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	for _, cmd := range cmds {
		if err := refuse(cmd); err != nil {
			return nil, err
		}
	}
	return executed(cmds, b.whole(ctx, batch{key: key, cmds: cmds, tx: true}))
}

// ReadTx is Tx for commands that only read, on a replica of the slot's master, or
// on the master where none is known. It follows no redirect: a replica that
// serves the slot no more is an error. It satisfies replset.ReplicaReader.
func (b *Backend) ReadTx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, notSent(err)
	}
	for _, cmd := range cmds {
		if err := refuse(cmd); err != nil {
			return nil, err
		}
	}
	slot := b.slotOf(key)
	if _, err := b.owner(ctx, slot); err != nil { // reads the map where there is none yet
		return nil, err
	}
	replica := b.slots.replica(slot)
	if replica == nil {
		return b.Tx(ctx, key, cmds)
	}
	if !b.shown(*replica) {
		return b.Tx(ctx, key, cmds)
	}
	to := target{addr: *replica, slot: slot}
	if err := b.acceptsMulti(ctx, to); err != nil {
		return nil, err
	}
	return executed(cmds, b.send(ctx, to, batch{key: key, cmds: cmds, tx: true, readonly: true}))
}

// executed takes the replies of EXEC, the last of all, or the error that kept the
// commands from running.
func executed(cmds [][]string, replies []any) ([]any, error) {
	exec := replies[len(replies)-1]
	if list, ok := exec.([]any); ok && len(list) == len(cmds) {
		for i := range list {
			list[i] = shape(cmds[i], list[i])
		}
		return list, nil
	}
	for _, v := range replies { // a refused command says more than EXECABORT after it
		if err, failed := v.(error); failed {
			return nil, err
		}
	}
	return nil, fmt.Errorf("rueidisbackend: EXEC returned %T, not %d replies", exec, len(cmds))
}

// batch is commands of one slot that go to one node together, between MULTI and
// EXEC if tx is set. READONLY before them lets a server replica answer; the
// connection keeps it, which on a master means nothing.
type batch struct {
	key          string
	cmds         [][]string
	tx, readonly bool
}

// whole runs a batch on the master that owns its slot, in one DoMulti, and
// follows a redirect of any of its commands with all of them. It returns a reply
// or an error for each command, MULTI and EXEC included, or one error alone.
func (b *Backend) whole(ctx context.Context, what batch) []any {
	if err := ctx.Err(); err != nil {
		return []any{notSent(err)}
	}
	slot := b.slotOf(what.key)
	addr, err := b.owner(ctx, slot)
	if err != nil {
		return []any{err}
	}
	to := target{addr: addr, slot: slot}
	for hop := 0; ; hop++ {
		var replies []any
		if what.tx {
			if err := b.acceptsMulti(ctx, to); err != nil {
				replies = []any{err}
			}
		}
		if replies == nil {
			replies = b.send(ctx, to, what)
		}
		next, again := to, false
		for i := 0; i < len(replies) && !again; i++ {
			next, again = b.redirected(to, slot, replies[i])
		}
		if !again || hop == maxRedirects {
			return replies
		}
		to = next
	}
}

// acceptsMulti sends a node its first transaction empty. Where MULTI is refused
// (an ACL without it, a renamed command), the commands after it would run one by
// one.
func (b *Backend) acceptsMulti(ctx context.Context, to target) error {
	if _, known := b.multi.Load(to.addr); known {
		return nil
	}
	if err, refused := b.send(ctx, to, batch{tx: true})[0].(error); refused {
		return err
	}
	b.multi.Store(to.addr, nil)
	return nil
}

// send runs a batch on one node. It never sends twice.
func (b *Backend) send(ctx context.Context, to target, what batch) []any {
	built := make([]rueidis.Completed, 0, len(what.cmds)+4)
	if what.readonly {
		built = append(built, b.bare("READONLY"))
	}
	if to.ask { // inside MULTI it holds until EXEC
		built = append(built, b.bare("ASKING"))
	}
	if what.tx {
		built = append(built, b.bare("MULTI"))
	}
	for _, cmd := range what.cmds {
		built = append(built, b.command(cmd))
	}
	if what.tx {
		built = append(built, b.bare("EXEC"))
	}
	results, err := b.call(ctx, to, built)
	if err == errElsewhere {
		return []any{err}
	}
	if err != nil || results[len(results)-1].NonRedisError() != nil {
		b.lost(ctx)
	}
	if err != nil {
		return []any{err}
	}
	if to.ask || what.readonly { // the two are never together
		results = results[1:]
	}
	replies := make([]any, len(results))
	for i, r := range results {
		replies[i] = b.reply(ctx, to.addr, r)
	}
	return replies
}
