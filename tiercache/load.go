package tiercache

import (
	"context"
	"crypto/rand"
	"errors"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// Loader returns a value from behind the cache. It returns ErrNotFound for what
// does not exist. Its ctx has the values of the first caller's, and ends with
// Options.LoadTimeout or Close.
type Loader[V any] func(ctx context.Context) (V, error)

// BatchLoader returns the values of keys, in one call. What its map does not
// hold does not exist.
type BatchLoader[V any] func(ctx context.Context, keys []string) (map[string]V, error)

// GetOrLoad is Get, and loads what is not there: with one call of load for all
// who ask at one time in this process. The value is stored unless the key was
// written, deleted or evicted since the load began.
//
// A shard that does not answer delays the load by Options.Timeout at most, and
// does not prevent it. Errors are ErrNotFound, a *LoadError, or ctx's: a caller that
// leaves does not end the load for the others.
func (c *Cache[V]) GetOrLoad(ctx context.Context, key string, load Loader[V], opts ...CallOption) (V, error) {
	if e := c.hit(key); e != nil {
		c.stats.localHits.add()
		return c.value(e)
	}
	var zero V
	life, err := c.opts.life(opts)
	if err == nil {
		err = c.closed()
	}
	if err != nil {
		return zero, err
	}
	r := c.route(key)
	f, failed := c.fetch(ctx, r, key)
	switch {
	case ctx.Err() != nil:
		return zero, ctx.Err()
	case f.absent:
		return zero, ErrNotFound
	case f.found:
		return f.value, nil
	}
	result := r.view.Load().flights.DoChan(c.flight(r, key), func() (any, error) {
		return c.load(ctx, r, key, f.over, load, life, failed != nil)
	})
	select {
	case res := <-result:
		if res.Err != nil {
			return zero, res.Err
		}
		l := res.Val.(*loaded[V])
		switch {
		case l.absent:
			return zero, ErrNotFound
		case res.Shared && !c.coder.keep && l.body != "":
			return c.coder.decode(l.body[1], l.body[bodySize:]) // a copy for each
		}
		return l.value, nil
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}

// loaded is the outcome of a load.
type loaded[V any] struct {
	value  V
	body   string
	absent bool
}

// flight is the name under which loads of key are one. Where notices arrive, a
// write ends it. Where they do not, it lasts a heartbeat at most, so that
// nobody gets a value that was read long before he asked.
func (c *Cache[V]) flight(r route, key string) string {
	t := now()
	if r.counts(r.generation.Load(), t) {
		return key
	}
	return key + "\x00" + strconv.FormatInt(t/int64(c.opts.Heartbeat), 10)
}

// forget ends key's flight for who comes later.
func (c *Cache[V]) forget(r route, key string) {
	flights := &r.view.Load().flights
	flights.Forget(key)
	flights.Forget(c.flight(r, key))
}

// load runs once for all callers of one flight.
func (c *Cache[V]) load(ctx context.Context, r route, key, over string, load Loader[V], life time.Duration, blind bool) (*loaded[V], error) {
	ctx, cancel := c.detach(ctx)
	defer cancel()
	b := c.begin(ctx, r, []string{key}, []string{over}, blind)
	if f := b.found[0]; f.found {
		return &loaded[V]{value: f.value, absent: f.absent}, nil
	}
	value, err := call(ctx, &c.stats, func(ctx context.Context) (V, error) { return load(ctx) })
	l := &loaded[V]{value: value, absent: errors.Is(err, ErrNotFound)}
	if err != nil && !l.absent {
		return nil, &LoadError{err}
	}
	it, err := c.item(value, l.absent, life)
	if err != nil {
		return nil, err
	}
	l.body = it.body
	c.finish(ctx, r, b, []item{it})
	return l, nil
}

// detach is a context for a load: with the values of ctx, but not its end.
func (c *Cache[V]) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opts.LoadTimeout)
	stop := context.AfterFunc(c.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// call calls a loader in a goroutine of its own: one that panics, exits or hangs
// takes nobody with it.
func call[T any](ctx context.Context, stats *cacheStats, load func(context.Context) (T, error)) (value T, err error) {
	stats.loads.Add(1)
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		out := outcome{err: errors.New("the loader ended its goroutine")}
		defer func() {
			if p := recover(); p != nil {
				out.err = &PanicError{p, debug.Stack()}
			}
			done <- out
		}()
		out.value, out.err = load(ctx)
	}()
	var out outcome
	select {
	case out = <-done:
	case <-ctx.Done():
		out.err = ctx.Err()
	}
	if out.err != nil && !errors.Is(out.err, ErrNotFound) {
		stats.loadErrors.Add(1)
	}
	return out.value, out.err
}

// beginning is what was known of some keys of a shard when their load began.
type beginning[V any] struct {
	keys   []string
	found  []found[V] // what turned out to be there
	tokens []string   // of the markers, "" where there is none
	view   *view
	blind  bool // the shard did not answer
	stripe []int64
	failed int64
}

// begin leaves markers for the keys that are missing, unless the load is to go
// without: the shard has just failed to answer.
func (c *Cache[V]) begin(ctx context.Context, r route, keys, over []string, blind bool) *beginning[V] {
	b := &beginning[V]{
		keys: keys, found: make([]found[V], len(keys)), tokens: make([]string, len(keys)), stripe: make([]int64, len(keys)),
		view: r.view.Load(),
	}
	b.failed = b.view.failed.Load()
	for i, key := range keys {
		b.stripe[i] = b.view.stripe(key).Load()
	}
	synced := r.synced()
	var reply *scriptReply
	if !blind {
		var err error
		reply, err = c.lease(ctx, r, keys, over)
		blind = err != nil
	}
	if blind {
		b.blind = true
		c.stats.blindLoads.Add(1)
		return b
	}
	rd := &reading{state: state{epoch: reply.epoch, sequence: reply.sequence}, known: true, at: reply.received}
	for i, raw := range reply.rest {
		text, _ := raw.(string)
		if e, ok := parseEnvelope(text); ok && e.marker() {
			b.tokens[i] = e.payload
			continue
		}
		b.found[i] = c.accept(r, synced, rd, keys[i], raw)
	}
	return b
}

// lease asks for values or markers of keys; what has the head given in over counts
// as missing.
func (c *Cache[V]) lease(ctx context.Context, r route, keys, over []string) (*scriptReply, error) {
	var token [tokenSize]byte
	rand.Read(token[:])
	args := append([]string{strconv.FormatInt(c.opts.LoadTimeout.Milliseconds(), 10), string(token[:])}, over...)
	reply, err := r.call(ctx, &script.Lease, c.places(keys), args...)
	if err == nil && len(reply.rest) != len(keys) {
		return nil, errReply
	}
	return reply, err
}

var errReply = errors.New("a script's reply is short")

// item is a loaded value for the shard. A life of 0 keeps none.
func (c *Cache[V]) item(value V, absent bool, life time.Duration) (item, error) {
	if absent {
		if c.opts.NegativeTTL < 0 {
			return item{}, nil
		}
		return item{absentBody, milliseconds(c.opts.jittered(c.opts.NegativeTTL))}, nil
	}
	body, err := c.coder.encode(value)
	return item{body, life}, err
}

// finish stores loaded values where their markers still stand, and takes those
// into L1.
func (c *Cache[V]) finish(ctx context.Context, r route, b *beginning[V], items []item) {
	at := now()
	if b.blind {
		c.finishBlind(r, b, items, at)
		return
	}
	if c.off.marker {
		c.remark(ctx, r, b)
	}
	var places, args []string
	var which []int
	for i, f := range items {
		if b.tokens[i] != "" {
			which = append(which, i)
			places = append(places, c.place(b.keys[i]))
			args = append(args, b.tokens[i], strconv.FormatInt(f.life.Milliseconds(), 10), f.body)
		}
	}
	if len(which) == 0 {
		return
	}
	v := r.synced()
	reply, err := r.call(ctx, &script.Fill, places, args...)
	if err != nil || len(reply.rest) != len(which) {
		return // the value was loaded, which is what counts
	}
	for n, i := range which {
		if reply.rest[n] != int64(1) {
			c.refused(r.remote, b.keys[i])
			continue
		}
		c.stats.fills.Add(1)
		if v != nil && v.epoch.Load() == reply.epoch && items[i].life > 0 {
			if e := c.bodyEntry(r, v, items[i].body, reply.sequence, at, int64(items[i].life)); e != nil {
				c.remember(v, b.keys[i], e)
			}
		}
	}
}

func (c *Cache[V]) refused(r *remote, key string) {
	c.stats.refusedFills.Add(1)
	c.events.tell(EventFillRefused, r.name, key, nil)
}

// finishBlind takes values into L1 for one heartbeat, while their shard is not
// there to hold them.
func (c *Cache[V]) finishBlind(r route, b *beginning[V], items []item, at int64) {
	for i, f := range items {
		if f.life <= 0 {
			continue
		}
		e := c.bodyEntry(r, b.view, f.body, 0, at, min(int64(f.life), int64(c.opts.Heartbeat)))
		if e == nil {
			continue
		}
		e.blind = true
		c.rememberBlind(b.view, b.keys[i], e, b.stripe[i], b.failed)
	}
}

// remark takes markers anew, whatever happened since the load began: for tests,
// which show that this is wrong.
func (c *Cache[V]) remark(ctx context.Context, r route, b *beginning[V]) {
	reply, err := c.lease(ctx, r, b.keys, make([]string, len(b.keys)))
	if err != nil {
		return
	}
	for i, raw := range reply.rest {
		text, _ := raw.(string)
		if e, ok := parseEnvelope(text); ok && e.marker() {
			b.tokens[i] = e.payload
		}
	}
}
