package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// nodeSetLife is how long Nodes' answer is used. Calling it for each command
// would build a client for each node of the cluster each time; and rueidis
// closes the connections of a node 5 s after it dropped it, so an answer that is
// not older than that has no closed client in it.
const nodeSetLife = time.Second

type nodeSet struct {
	clients map[string]rueidis.Client
	taken   time.Time
}

func (b *Backend) takeNodes() map[string]rueidis.Client {
	set := &nodeSet{taken: time.Now(), clients: b.client.Nodes()}
	b.nodes.Store(set)
	return set.clients
}

const (
	// meetWait bounds how long an unknown node is waited for. It is one that
	// rueidis hides (see follow), and either owns a slot now, which rueidis learns
	// within 1 s of the MOVED that says so, or is dead, and the map will change.
	meetWait = 2 * time.Second
	meetPoll = 20 * time.Millisecond

	// introWait is how long one attempt at an introduction is waited for. It may
	// come upon a frozen node, and rueidis dials one for 5 s, ctx or no ctx.
	introWait = 100 * time.Millisecond

	// followWait bounds what rueidis does by itself, since by default it follows
	// redirects without end.
	followWait = 5 * time.Second
)

// errElsewhere: nothing was sent, because the map changed while a node was
// waited for.
var errElsewhere = errors.New("rueidisbackend: the slot has another master now: try again")

// node returns the client of one node, or nil if that is one which rueidis hides.
func (b *Backend) node(ctx context.Context, to target) (rueidis.Client, error) {
	if set := b.nodes.Load(); set != nil && time.Since(set.taken) < nodeSetLife {
		if client, ok := set.clients[to.addr]; ok {
			return client, nil
		}
	}
	if client, ok := b.takeNodes()[to.addr]; ok {
		return client, nil
	}
	for start := time.Now(); ; time.Sleep(meetPoll) {
		if b.meeting.CompareAndSwap(false, true) { // one caller sees to it, however many wait
			b.introduce(ctx, to)
			b.meeting.Store(false)
		}
		if client, ok := b.takeNodes()[to.addr]; ok {
			return client, nil
		}
		if to.ask {
			return nil, nil
		}
		b.reload()
		owner := b.slots.owner[to.slot].Load()
		switch {
		case owner == nil || *owner != to.addr:
			return nil, errElsewhere
		case ctx.Err() != nil:
			return nil, notSent(ctx.Err())
		case time.Since(start) > meetWait:
			return nil, fmt.Errorf("rueidisbackend: slot %d leads to %s, which is not among the client's nodes: it is down, or check the addresses that the nodes announce", to.slot, to.addr)
		}
	}
}

// introduce lets rueidis make the acquaintance of a node that it does not know:
// a master that joined a moment ago, one without slots, which CLUSTER SLOTS
// leaves out though a slot may be on its way there, or a replica just promoted,
// since CLUSTER SLOTS leaves out replicas that have replicated nothing yet.
//
// rueidis makes a client of a node that a redirect names, so the cluster client
// sends a harmless command to where a redirect must be. ASK comes from the
// slot's master, for keys that do not exist. MOVED comes from any other node; a
// command bound to no slot goes to a random one, where one bound to the slot
// would go to the old master, which may be dead.
func (b *Backend) introduce(ctx context.Context, to target) {
	key := b.absentKey(to.slot)
	cmd := b.bare("EXISTS", key)
	if to.ask {
		cmd = cmd.SetSlot(key)
	}
	ctx, cancel := within(ctx, followWait)
	met := make(chan struct{})
	go func() {
		defer close(met)
		defer cancel()
		defer func() { _ = recover() }() // that the node is still unknown tells enough
		_ = b.client.Do(ctx, cmd)
	}()
	timer := time.NewTimer(introWait)
	defer timer.Stop()
	select {
	case <-met:
	case <-timer.C:
	}
}

// follow lets the cluster client send what a node answered with ASK, as the way
// to a node that Nodes leaves out although rueidis is connected to it: one that
// InitAddress names and CLUSTER SLOTS does not. rueidis meets the same ASK, and
// with MULTI and EXEC bound to no slot it follows with the whole transaction.
// Everything is sent once here too, except that a client with a ConnLifetime
// sends again what was in flight at the end of a connection's life.
func (b *Backend) follow(ctx context.Context, cmds []rueidis.Completed) []rueidis.RedisResult {
	ctx, cancel := within(ctx, followWait)
	defer cancel()
	var rest []rueidis.Completed
	var at []int
	for i := range cmds {
		if cmds[i].Commands()[0] != "ASKING" { // rueidis has its own
			rest, at = append(rest, cmds[i]), append(at, i)
		}
	}
	results := make([]rueidis.RedisResult, len(cmds))
	for n, r := range b.client.DoMulti(ctx, rest...) {
		results[at[n]] = r
	}
	return results
}

// within is context.WithTimeout without a deadline to see: at a deadline rueidis
// closes the connection, which others share.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	timer := time.AfterFunc(d, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}

// absentKey is a key of that slot that nobody else thinks of.
func (b *Backend) absentKey(slot uint16) string {
	suffix := strconv.FormatUint(rand.Uint64(), 36)
	for n := 0; ; n++ { // 16384 tries on average
		if tag := "{" + strconv.Itoa(n) + "}"; b.slotOf(tag) == slot {
			return tag + "absent:" + suffix
		}
	}
}
