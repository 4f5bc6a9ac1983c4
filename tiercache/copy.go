package tiercache

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/shardkit/shardkit/tiercache/internal/hot"
	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// A copy of a hot key's value lies on another shard than its owner. Its envelope's
// head is the holder's, but with the owner's sequence, and the owner's whole
// envelope follows; nothing, if the key was deleted.
//
// It ends two heartbeats after its owner was asked for the value, by the holder's
// clock and the reader's. It counts for a reader only while a value in L1 would:
// under a view of the owner, and while no later write is known.

// copyLife is how long copies live.
func (o *Options) copyLife() time.Duration { return o.window() }

// copyPlace is the name of key's copies.
func (c *Cache[V]) copyPlace(key string) string { return c.opts.Namespace + "#copy:" + key }

// inTurn is the holder of a copy that is to be asked for the key now, nil if its
// owner is.
func (c *Cache[V]) inTurn(r route, k *hot.Key[heat]) *remote {
	holders := c.routing.Load().holders(k.Name)
	turn := k.Value.turn.Add(1) % uint32(1+len(holders))
	if v := r.synced(); turn == 0 || v == nil || !r.counts(v.generation, now()) {
		return nil
	}
	return holders[turn-1]
}

// fetchCopies reads hot keys from a holder of their copies. A key that is not found
// may be at its owner.
func (c *Cache[V]) fetchCopies(ctx context.Context, holder *remote, keys []*hot.Key[heat]) []found[V] {
	copies, views := make([]found[V], len(keys)), make([]*view, len(keys))
	routes, places := make([]route, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		routes[i], places[i] = c.route(k.Name), c.copyPlace(k.Name)
		views[i] = routes[i].synced()
	}
	ctx, cancel := holder.brief.limit(ctx)
	defer cancel()
	rd, err := holder.read(ctx, places)
	if err != nil {
		return copies
	}
	for i, k := range keys {
		if views[i] == nil || routes[i].stand != nil {
			continue
		}
		if copies[i] = c.acceptCopy(routes[i], views[i], holder, rd, k, rd.values[i]); copies[i].found {
			c.stats.copyHits.Add(1)
			c.count(copies[i])
		}
	}
	return copies
}

// acceptCopy judges what a holder returned, and takes it into L1 under the owner's
// view v.
func (c *Cache[V]) acceptCopy(r route, v *view, holder *remote, rd *reading, k *hot.Key[heat], raw any) (f found[V]) {
	text, _ := raw.(string)
	head, ok := parseHead(text)
	if !ok || !rd.known || tagged(text[min(headSize, len(text)):]) || head.epoch != rd.state.epoch || holder.remaining(head.expiry, rd.at) <= 0 || len(text) == headSize {
		k.Value.missed(int64(c.opts.copyLife()))
		return f
	}
	t := now()
	known := k.Value.older(r, v, k.Name, head.sequence) || !v.unchanged(k.Name, t-int64(c.opts.copyLife()))
	if !c.off.copies && (known || !r.counts(v.generation, t)) {
		return f
	}
	at := &reading{state: state{epoch: v.epoch.Load(), sequence: head.sequence}, known: true, sent: rd.sent, at: rd.at}
	return c.accept(r, v, at, k.Name, text[headSize:])
}

// missed has copies made soon, even if another reader should just have made them.
func (h *heat) missed(life int64) {
	soon := h.tried.Load() + life/8
	if due := h.due.Load(); due != 0 && soon < due && h.due.CompareAndSwap(due, soon) {
		h.gone.Store(true)
	}
}

// promotes reports whether this reader is to have copies of the key made.
func (c *Cache[V]) promotes(r route, k *hot.Key[heat]) bool {
	t, h := now(), &k.Value
	due := h.due.Load()
	if due != 0 && t < due || r.stand != nil || !h.due.CompareAndSwap(due, t+int64(c.opts.copyLife())/8) {
		return false
	}
	h.tried.Store(t)
	return len(c.routing.Load().holders(k.Name)) > 0
}

// promote reads a hot key from its owner, marks it there, and copies the value.
// Where another reader did so of late, it is only read.
func (c *Cache[V]) promote(ctx context.Context, r route, k *hot.Key[heat]) (*reading, error) {
	ctx, cancel := r.deadlines.limit(ctx)
	defer cancel()
	life, h := c.opts.copyLife(), &k.Value
	left := life / 2
	if h.gone.Swap(false) {
		left = life
	}
	w := h.watched(r.remote)
	place := c.place(k.Name)
	reply, err := r.call(ctx, &script.Promote, []string{place}, strconv.FormatInt(life.Microseconds(), 10), strconv.FormatInt(left.Microseconds(), 10))
	if err != nil {
		return nil, err
	}
	if len(reply.rest) != 2 {
		return nil, errReply
	}
	w.since.CompareAndSwap(0, reply.sequence)
	ends, _ := reply.rest[1].(int64)
	if text, _ := reply.rest[0].(string); tagged(text) {
		h.due.Store(reply.sent + int64(hotWindow))
		return r.read(ctx, []string{place}) // which looks at its tags
	}
	switch {
	case ends > 0:
		c.stats.promotions.Add(1)
		h.due.Store(reply.sent + int64(life)/2)
		text, _ := reply.rest[0].(string)
		cp := copied{key: k.Name, sequence: reply.sequence, envelope: text, until: reply.sent + int64(life)}
		if e, ok := parseEnvelope(text); ok {
			cp.until = min(cp.until, reply.received+int64(r.remaining(e.expiry, reply.received)))
		}
		c.begin(func() {
			ctx, cancel := context.WithTimeout(c.ctx, c.opts.Timeout)
			defer cancel()
			c.spread(ctx, []copied{cp})
		})
	case ends < 0:
		h.due.Store(reply.sent + (-ends-reply.us)*1000 - int64(life)/2 + rand.Int64N(int64(life)/8))
	}
	rd := reply.reading()
	rd.values = reply.rest[:1]
	return rd, r.judge(ctx, rd)
}

// tagged reports whether an envelope has tags. A value with some is not copied: who
// invalidates a tag knows of no keys.
func tagged(text string) bool { return len(text) > headSize && text[headSize]&flagTagged != 0 }

// copied is a value for the holders of its key's copies; without an envelope it
// was deleted.
type copied struct {
	key, envelope string
	sequence      int64 // the owner's
	until         int64 // ns
}

// rewrite has the copies of keys that were written be what was written. The owner
// named the keys in its reply.
func (c *Cache[V]) rewrite(ctx context.Context, r route, reply *scriptReply, keys []string, items []item) {
	var copies []copied
	for n := 0; n+1 < len(reply.rest); n += 2 {
		i, _ := reply.rest[n].(int64)
		ends, _ := reply.rest[n+1].(int64)
		if i < 0 || i >= int64(len(keys)) {
			continue
		}
		cp := copied{key: keys[i], sequence: reply.sequence, until: reply.sent + (ends-reply.us)*1000}
		if it := items[i]; it.life > 0 && len(it.tags) == 0 { // tags are of one shard
			e := envelope{epoch: reply.epoch, sequence: reply.sequence, expiry: reply.us/1000 + it.life.Milliseconds()}
			cp.envelope = e.head() + it.body
		}
		copies = append(copies, cp)
	}
	if len(copies) == 0 {
		return
	}
	ctx, cancel := r.brief.limit(ctx)
	defer cancel()
	c.spread(ctx, copies)
}

// spread stores copies on their holders, all at one time. A holder that does not
// answer keeps what it has, until that ends.
func (c *Cache[V]) spread(ctx context.Context, copies []copied) {
	rs := c.routing.Load()
	byHolder := map[*remote][]copied{}
	for _, cp := range copies {
		for _, holder := range rs.holders(cp.key) {
			byHolder[holder] = append(byHolder[holder], cp)
		}
	}
	var wg sync.WaitGroup
	for holder, copies := range byHolder {
		wg.Go(func() {
			if holder.ready(ctx) != nil {
				return
			}
			places, args := make([]string, len(copies)), make([]string, 0, 3*len(copies))
			for i, cp := range copies {
				places[i] = c.copyPlace(cp.key)
				args = append(args, strconv.FormatInt(holder.clock.earliest(cp.until)/1e6, 10), strconv.FormatInt(cp.sequence, 10), cp.envelope)
			}
			holder.run(ctx, holder.do, &script.Copy, places, c.opts.window(), args...)
		})
	}
	wg.Wait()
}
