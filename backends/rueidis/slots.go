package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	slotCount = 16384

	// reloadGap is the least time between two readings of the slot map. Errors
	// come by the thousand while a master is away, and the map is read from
	// nodes that have the others' work to do meanwhile.
	reloadGap = 500 * time.Millisecond

	// reloadAge is when the map is read again though nothing was wrong with it:
	// a keyless command gets no MOVED, so it cannot tell of an old map.
	reloadAge = 10 * time.Second

	// askWait is how long a node has for its answer, and askAtOnce how many are
	// asked at once: more than one, so that a frozen node costs nothing.
	askWait   = time.Second
	askAtOnce = 3

	// lostWait is many times what a reading takes on nodes that are well.
	lostWait = 100 * time.Millisecond
)

// slotMap is who owns which slot. rueidis has one too, but lets nobody look at
// it: it can be used only by sending through the cluster client, which follows
// redirects by itself.
type slotMap struct {
	// A reading replaces the table whole: commands that find one slot's new
	// owner and another slot's old one would be sent astray once for each slot.
	table atomic.Pointer[slotTable]
	began atomic.Pointer[time.Time] // when the last reading began

	mu      sync.Mutex
	reading chan struct{} // closed at the end of the reading under way
	err     error         // of the last one
}

// slotTable has an address by slot; nil is none known. What MOVED tells is
// written into it.
type slotTable struct {
	owner   [slotCount]atomic.Pointer[string]
	replica [slotCount]atomic.Pointer[string] // one of the owner's
}

func (m *slotMap) owner(slot uint16) *string   { return m.table.Load().owner[slot].Load() }
func (m *slotMap) replica(slot uint16) *string { return m.table.Load().replica[slot].Load() }

// moved takes over what a MOVED said.
func (m *slotMap) moved(slot uint16, addr string) { m.table.Load().owner[slot].Store(&addr) }

// owner returns the address of the master that owns the slot. It waits for the
// map if nothing is known of the slot.
func (b *Backend) owner(ctx context.Context, slot uint16) (string, error) {
	if addr := b.slots.owner(slot); addr != nil {
		if began := b.slots.began.Load(); began == nil || time.Since(*began) > reloadAge {
			b.reload()
		}
		return *addr, nil
	}
	if reading := b.reload(); reading != nil {
		select {
		case <-reading:
		case <-ctx.Done():
			return "", notSent(ctx.Err())
		}
	}
	if addr := b.slots.owner(slot); addr != nil {
		return *addr, nil
	}
	b.slots.mu.Lock()
	err := b.slots.err
	b.slots.mu.Unlock()
	if err == nil {
		err = fmt.Errorf("rueidisbackend: no master serves slot %d now: look at CLUSTER SLOTS: %w", slot, rueidis.ErrNoSlot)
	}
	return "", err
}

// reload sees to it that the map is read again soon, and returns the end of the
// reading under way; nil if there is none, because one has just been.
func (b *Backend) reload() <-chan struct{} {
	m := &b.slots
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reading != nil {
		return m.reading
	}
	now := time.Now()
	if began := m.began.Load(); began != nil && now.Sub(*began) < reloadGap {
		return nil
	}
	m.began.Store(&now)
	reading := make(chan struct{})
	m.reading = reading
	go func() {
		err := b.read()
		m.mu.Lock()
		m.reading, m.err = nil, err
		m.mu.Unlock()
		close(reading)
	}()
	return reading
}

// lost is reload after a node was lost. It waits a little for the map, so that
// who tries again at once does not dial the same node again: on a frozen one
// that takes the dialler's time-out.
func (b *Backend) lost(ctx context.Context) {
	reading := b.reload()
	if reading == nil || ctx.Err() != nil {
		return
	}
	timer := time.NewTimer(lostWait)
	defer timer.Stop()
	select {
	case <-reading:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// read asks nodes for the map until one of them knows an owner for each slot,
// and takes over the fullest that was seen.
func (b *Backend) read() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rueidisbackend: rueidis panicked: %v", p)
		}
	}()
	var addrs []string
	for addr := range b.takeNodes() {
		addrs = append(addrs, addr)
	}
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	best := &answer{err: errors.New("rueidisbackend: rueidis knows no node: check InitAddress")}
	for some := range slices.Chunk(addrs, askAtOnce) {
		ctx, cancel := context.WithTimeout(context.Background(), askWait)
		answers := make(chan *answer, len(some))
		for _, addr := range some {
			go func() { answers <- b.ask(ctx, addr) }()
		}
		for range some {
			if a := <-answers; a.known > best.known || best.known == 0 {
				best = a
			}
			if best.known == slotCount {
				break
			}
		}
		cancel()
		if best.known > 0 {
			break
		}
	}
	if best.known == 0 {
		return best.err
	}
	b.slots.table.Store(&best.slotTable)
	return nil
}

// answer is the map as one node sees it.
type answer struct {
	slotTable
	known int // slots that have an owner
	err   error
}

func (b *Backend) ask(ctx context.Context, addr string) *answer {
	results, err := b.call(ctx, target{addr: addr}, []rueidis.Completed{b.bare("CLUSTER", "SLOTS")})
	if err == nil {
		err = results[0].Error()
	}
	if err != nil {
		return &answer{err: fmt.Errorf("rueidisbackend: no node answered CLUSTER SLOTS; %s: %w", addr, err)}
	}
	m, _ := results[0].ToMessage()
	return parseSlots(addr, plain(&m))
}

// parseSlots reads CLUSTER SLOTS: a list of {first slot, last slot, {host, port,
// ...} of the master, replicas...}.
func parseSlots(asked string, v any) *answer {
	a := &answer{err: fmt.Errorf("rueidisbackend: %s knows the owner of no slot: it is not part of a cluster", asked)}
	ranges, _ := v.([]any)
	for _, r := range ranges {
		r, _ := r.([]any)
		if len(r) < 3 {
			continue
		}
		first, ok1 := r[0].(int64)
		last, ok2 := r[1].(int64)
		master := slotsAddr(asked, r[2])
		if !ok1 || !ok2 || master == "" {
			continue
		}
		var replica *string
		if len(r) > 3 {
			// Any will do; at random, so that processes share them out.
			if addr := slotsAddr(asked, r[3+rand.IntN(len(r)-3)]); addr != "" {
				replica = &addr
			}
		}
		for slot := max(first, 0); slot <= last && slot < slotCount; slot++ {
			a.owner[slot].Store(&master)
			a.replica[slot].Store(replica)
			a.known++
		}
	}
	return a
}

// slotsAddr reads a node of CLUSTER SLOTS, {host, port, ...}; "" is none.
func slotsAddr(asked string, v any) string {
	node, _ := v.([]any)
	if len(node) < 2 {
		return ""
	}
	host, _ := node[0].(string)
	port, ok := node[1].(int64)
	if !ok {
		return ""
	}
	return nodeAddr(asked, host, strconv.FormatInt(port, 10))
}
