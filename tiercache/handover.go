package tiercache

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// A handover is from the list of shards before to the present one. While it lasts, a key
// that has moved is also deleted at the shard that had it, when it is written, and that
// shard is asked for what the new one does not have. All delete for longer than anybody
// asks. If a delete fails, nobody may ask any more: a list without handover takes the
// place of this one.
type handover struct {
	before  *ring.Ring // nil: there is none
	remotes []*remote  // by their numbers in it; nil for one that this process was not given

	asks, deletes *atomic.Int64 // until when, ns

	since *atomic.Int64 // when the present list came to be, or later, ns
}

func newHandover(l *list, known map[string]*remote, opts *Options, since int64) handover {
	h := handover{asks: new(atomic.Int64), deletes: new(atomic.Int64), since: new(atomic.Int64)}
	h.since.Store(since)
	h.deletes.Store(math.MinInt64)
	if len(l.Before) == 0 {
		return h
	}
	before, err := ring.New(ring.Nodes(l.Before...), &ring.Options{Placement: opts.Ring})
	if err != nil {
		return h
	}
	h.before = before
	for i := range before.Len() {
		h.remotes = append(h.remotes, known[before.Name(i)])
	}
	h.asks.Store(since + int64(max(opts.Handover, 0)))
	h.carried(since, opts)
	return h
}

// carried tells since when a shard carries the list.
func (h *handover) carried(since int64, opts *Options) {
	lower(h.since, since)
	if h.before == nil {
		return
	}
	ask := since + int64(max(opts.Handover, 0))
	lower(h.asks, ask)
	raise(h.deletes, ask+int64(opts.window()+opts.FailoverTTL))
}

func lower(n *atomic.Int64, to int64) {
	for old := n.Load(); to < old && !n.CompareAndSwap(old, to); old = n.Load() {
	}
}

// left are the shards of the list before that are not in this one.
func (rs *routing) left() (gone []*remote) {
	for _, r := range rs.handover.remotes {
		if r != nil && !slices.Contains(rs.remotes, r) {
			gone = append(gone, r)
		}
	}
	return gone
}

// moved is the shard that key was on before, and false if it still is there, or if no
// handover is on at now.
func (rs *routing) moved(key string, until *atomic.Int64) (before *remote, ok bool) {
	if rs.before == nil || now() >= until.Load() {
		return nil, false
	}
	before = rs.handover.remotes[rs.before.Index(key)]
	return before, before != rs.remotes[rs.whole.Index(key)]
}

// eraseBefore deletes keys that are written where they were before the list changed.
// With an error others may still get there what was overwritten.
func (c *Cache[V]) eraseBefore(ctx context.Context, keys, places []string) error {
	rs := c.routing.Load()
	if rs.before == nil {
		return nil
	}
	byRemote := map[*remote][]string{}
	for i, key := range keys {
		if before, ok := rs.moved(key, rs.handover.deletes); ok {
			byRemote[before] = append(byRemote[before], places[i])
		}
	}
	for before, places := range byRemote {
		if before != nil {
			if _, err := before.erase(ctx, places); err == nil {
				continue
			}
		}
		return c.endHandover(ctx, rs)
	}
	return nil
}

// endHandover ends it for all processes.
func (s *shardSet) endHandover(ctx context.Context, rs *routing) error {
	s.ending.Lock()
	defer s.ending.Unlock()
	if present := s.routing.Load(); present.before == nil || present.list != rs.list {
		return nil
	}
	if err := s.propose(ctx, rs, rs.names(), nil, nil); !errors.Is(err, errListed) {
		return err
	}
	return nil // others changed the list, and its handover is from what was written now
}

// inherit asks the shard that had key before the list changed, and stores what it has on
// the key's present one.
func (c *Cache[V]) inherit(ctx context.Context, r route, key string) (f found[V]) {
	rs := c.routing.Load()
	if rs.before == nil || r.stand != nil {
		return f
	}
	before, ok := rs.moved(key, rs.handover.asks)
	if !ok || before == nil || before.out.Load() { // what is there may have been overwritten elsewhere
		return f
	}
	// The marker first: a write from here on voids it.
	v := r.synced()
	reply, own, err := c.lease(ctx, r, []string{key}, []string{""}, nil)
	if err != nil {
		return f
	}
	text, _ := reply.rest[0].(string)
	if e, ok := parseEnvelope(text); !ok || !e.marker() {
		return c.accept(r, v, reply.reading(), key, reply.rest[0])
	} else if e.payload != own {
		return f // somebody loads it
	}
	if c.freshened(ctx, before) != nil {
		return f
	}
	rd, err := before.read(ctx, []string{c.place(key)})
	if err != nil {
		return f
	}
	if text, _ := rd.values[0].(string); tagged(text) {
		return f // its tags are not known here
	}
	if f = c.accept(route{remote: before}, nil, rd, key, rd.values[0]); !f.found {
		return f
	}
	c.stats.inherited.Add(1)
	if left := time.Duration(f.ends - now()).Milliseconds(); left > 0 {
		r.call(ctx, &script.Fill, []string{c.place(key)}, own, strconv.FormatInt(left, 10), f.text[headSize:])
	}
	return f
}

// inheritMany is inherit for what was not found of a part, all at one time.
func (c *Cache[V]) inheritMany(ctx context.Context, p *part[V]) {
	rs := c.routing.Load()
	var moved []int
	for i, f := range p.found {
		if _, ok := rs.moved(p.keys[i], rs.handover.asks); ok && !f.found && f.over == "" {
			moved = append(moved, i)
		}
	}
	each(moved, func(i int) {
		if f := c.inherit(ctx, p.remote, p.keys[i]); f.found {
			p.found[i] = f
		}
	})
}
