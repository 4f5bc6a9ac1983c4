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
	// meetWait bounds how long an unknown node is waited for. Most likely it is
	// dead, and the map will name another soon.
	meetWait = 2 * time.Second
	meetPoll = 20 * time.Millisecond

	// introWait is how long one attempt at an introduction is waited for. It may
	// come upon a frozen node, and rueidis dials one for 5 s, ctx or no ctx.
	introWait = 100 * time.Millisecond
)

// errElsewhere: nothing was sent, because the map changed while a node was
// waited for.
var errElsewhere = errors.New("rueidisbackend: the slot has another master now: try again")

// node returns what sends to one node, and what to call afterwards.
func (b *Backend) node(ctx context.Context, to target) (rueidis.CommandClient, func(), error) {
	none := func() {}
	if set := b.nodes.Load(); set != nil && time.Since(set.taken) < nodeSetLife {
		if client, ok := set.clients[to.addr]; ok {
			return client, none, nil
		}
	}
	if client, ok := b.takeNodes()[to.addr]; ok {
		return client, none, nil
	}
	if id, ok := b.ids.Load(to.addr); ok {
		if client, release := b.hidden(ctx, to.addr, id.(string)); client != nil {
			return client, release, nil
		}
	}
	for start := time.Now(); ; time.Sleep(meetPoll) {
		if b.meeting.CompareAndSwap(false, true) { // one caller sees to it, however many wait
			err := b.introduce(ctx, to)
			b.meeting.Store(false)
			if errors.Is(err, rueidis.ErrClosing) {
				return nil, nil, failure(ctx, to.addr, err)
			}
		}
		if client, ok := b.takeNodes()[to.addr]; ok {
			return client, none, nil
		}
		if id := b.idOf(ctx, to.addr); id != "" {
			if client, release := b.hidden(ctx, to.addr, id); client != nil {
				return client, release, nil
			}
		}
		owner := b.slots.owner(to.slot)
		switch {
		case ctx.Err() != nil:
			return nil, nil, notSent(ctx.Err())
		case !to.ask && (owner == nil || *owner != to.addr):
			return nil, nil, errElsewhere
		case time.Since(start) > meetWait:
			return nil, nil, fmt.Errorf("rueidisbackend: slot %d leads to %s, which is not among the client's nodes: it is down, or check the addresses that the nodes announce", to.slot, to.addr)
		}
		b.reload()
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
func (b *Backend) introduce(ctx context.Context, to target) error {
	key := b.absentKey(to.slot)
	cmd := b.bare("EXISTS", key)
	if to.ask {
		cmd = cmd.SetSlot(key)
	}
	// Not WithTimeout: at a deadline rueidis closes the connection, which others
	// share. The end is needed because it follows redirects without end.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	met := make(chan error, 1)
	go func() {
		defer cancel()
		defer func() { _ = recover() }() // that the node is still unknown tells enough
		met <- b.client.Do(ctx, cmd).Error()
	}()
	timer := time.NewTimer(introWait)
	defer timer.Stop()
	select {
	case err := <-met:
		return err
	case <-timer.C:
		cancel()
		return nil
	}
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

// shown reports whether rueidis shows a client of the node.
func (b *Backend) shown(addr string) bool {
	if set := b.nodes.Load(); set != nil && time.Since(set.taken) < nodeSetLife {
		if _, ok := set.clients[addr]; ok {
			return true
		}
	}
	_, ok := b.takeNodes()[addr]
	return ok
}
