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

// Reloader is a Loader that is told the value of before, if L1 still holds one,
// however old: ok says so. It returns ErrNotModified where that is still right.
type Reloader[V any] func(ctx context.Context, old V, ok bool) (V, error)

// GetOrLoad is Get, and loads what is not there: with one call of load for all
// who ask at one time in this process, by GetOrLoad or GetMany; in any process, with
// Options.FleetWait. The value is stored unless the key was written, deleted or
// evicted since the load began.
//
// A shard that does not answer delays the load by Options.Timeout at most, and
// does not prevent it. Errors are ErrNotFound, a *LoadError, or ctx's: a caller that
// leaves does not end the load for the others. Options.StaleFor and SoftTimeout say
// when the value of before is given instead.
func (c *Cache[V]) GetOrLoad(ctx context.Context, key string, load Loader[V], opts ...CallOption) (V, error) {
	if e := c.hit(key); e != nil {
		c.stats.localHits.add()
		if c.due(e) {
			c.refresh(ctx, []string{key}, load.batch(key), opts)
		}
		return c.value(e)
	}
	return c.load(ctx, key, load.batch(key), opts)
}

func (load Loader[V]) batch(key string) BatchLoader[V] {
	return func(ctx context.Context, _ []string) (map[string]V, error) {
		value, err := load(ctx)
		if err != nil {
			return nil, err
		}
		return map[string]V{key: value}, nil
	}
}

// GetOrReload is GetOrLoad for a source that can tell whether a value has changed.
func (c *Cache[V]) GetOrReload(ctx context.Context, key string, load Reloader[V], opts ...CallOption) (V, error) {
	if e := c.hit(key); e != nil {
		c.stats.localHits.add()
		if c.due(e) {
			c.refresh(ctx, []string{key}, c.reload(key, load), opts)
		}
		return c.value(e)
	}
	return c.load(ctx, key, c.reload(key, load), opts)
}

func (c *Cache[V]) reload(key string, load Reloader[V]) BatchLoader[V] {
	return Loader[V](func(ctx context.Context) (V, error) {
		e, old := c.before(key)
		value, err := load(ctx, old, e != nil)
		if e != nil && errors.Is(err, ErrNotModified) {
			return c.value(e) // once more: old was the loader's to change
		}
		return value, err
	}).batch(key)
}

// load joins key's flight, or starts it, and waits.
func (c *Cache[V]) load(ctx context.Context, key string, load BatchLoader[V], opts []CallOption) (V, error) {
	var zero V
	_, tags, _, err := c.callOpts(opts)
	if err == nil {
		err = c.closed()
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return zero, err
	}
	late, stop := c.soft()
	defer stop()
	for {
		b := c.join(key, tags)
		if b.own {
			c.fly(ctx, []*flight[V]{b.flight}, load, opts)
		}
		if value, err := c.wait(ctx, b, late); err != errOutdated {
			return value, err
		}
	}
}

// fly starts the load of flights that are new.
func (c *Cache[V]) fly(ctx context.Context, fs []*flight[V], load BatchLoader[V], opts []CallOption) {
	if !c.behind(func() { c.run(ctx, fs, load, opts) }) {
		for _, f := range fs {
			f.err = ErrClosed
			c.land(f)
		}
	}
}

// behind runs f in a goroutine that Close waits for. After Close it does not.
func (c *Cache[V]) behind(f func()) bool {
	c.loading.Lock()
	defer c.loading.Unlock()
	if c.closed() != nil {
		return false
	}
	c.loads.Go(f)
	return true
}

// run is one load: of one key, or of those that a GetMany lacks.
func (c *Cache[V]) run(ctx context.Context, fs []*flight[V], load BatchLoader[V], opts []CallOption) {
	ctx, cancel := c.detach(ctx)
	defer cancel()
	if fs = c.ask(ctx, fs); len(fs) == 0 {
		return
	}
	tags, _ := tagsOf(opts)
	for began := now(); ; {
		crews := c.crews(fs)
		each(crews, func(cr *crew[V]) { c.mark(ctx, cr, tags) })
		c.call(ctx, crews, load, opts)
		fs = nil
		for _, cr := range crews {
			fs = append(fs, cr.waiting...)
		}
		if len(fs) == 0 {
			return
		}
		// How long it takes already says how often to look.
		wait(ctx, min(max(time.Duration(now()-began)/4, time.Millisecond), 100*time.Millisecond))
	}
}

// A crew is the flights of one route.
type crew[V any] struct {
	route
	flights []*flight[V]
	waiting []*flight[V] // for the load of another process
}

func keysOf[V any](fs []*flight[V]) []string {
	keys := make([]string, len(fs))
	for i, f := range fs {
		keys[i] = f.key
	}
	return keys
}

func (c *Cache[V]) crews(fs []*flight[V]) []*crew[V] {
	var crews []*crew[V]
	for _, group := range c.routing.Load().group(keysOf(fs)) {
		cr := &crew[V]{route: group.route}
		for _, i := range group.keys {
			cr.flights = append(cr.flights, fs[i])
		}
		crews = append(crews, cr)
	}
	return crews
}

// ask looks for each value on its shard, where the caller has not, and returns
// the flights of those that are to be loaded.
func (c *Cache[V]) ask(ctx context.Context, fs []*flight[V]) (rest []*flight[V]) {
	for _, f := range fs {
		if !f.asked {
			r := c.route(f.key)
			got, err := c.fetch(ctx, r, f.key)
			if err != nil {
				f.lose()
			}
			if f.over = got.over; got.found {
				f.take(&got)
				if !f.renews || !c.renew(ctx, r, f, &got) {
					c.land(f)
					continue
				}
			}
		}
		rest = append(rest, f)
	}
	return rest
}

// mark leaves markers for the keys that are missing, and keeps the flights of
// those that are to be loaded. A crew whose shard has just failed to answer goes
// without.
func (c *Cache[V]) mark(ctx context.Context, cr *crew[V], tags []string) {
	v, synced := cr.view.Load(), cr.synced()
	blind := false
	var fs, renewing []*flight[V]
	var over []string
	for _, f := range cr.flights {
		f.view, f.failed, f.stripe, f.from = v, v.failed.Load(), v.stripe(f.key).Load(), v.heard.Load()
		if f.ends != 0 {
			renewing = append(renewing, f)
			continue
		}
		fs, over = append(fs, f), append(over, f.over)
		blind = blind || f.blind()
	}
	cr.flights = renewing
	if len(fs) == 0 {
		return
	}
	var reply *scriptReply
	var token string
	if !blind {
		var err error
		reply, token, err = c.lease(ctx, cr.route, keysOf(fs), over, tags)
		blind = err != nil
	}
	if blind {
		c.stats.blindLoads.Add(1)
		for _, f := range fs {
			f.lose()
			f.stands = ""
		}
		cr.flights = append(cr.flights, fs...)
		return
	}
	for _, f := range fs {
		f.from = reply.sequence
	}
	rd := reply.reading()
	if cr.judge(ctx, rd) != nil {
		rd.known = false
	}
	for i, f := range fs {
		text, _ := rd.values[i].(string)
		if e, ok := parseEnvelope(text); ok && e.marker() {
			f.stands, f.leads = e.payload, e.payload == token
			if !f.leads && c.waits(ctx, f, text) {
				cr.waiting = append(cr.waiting, f)
				continue
			}
		} else if got := c.accept(cr.route, synced, rd, f.key, rd.values[i]); got.found {
			if f.rival != "" {
				c.stats.awaited.Add(1)
			}
			f.take(&got)
			c.land(f)
			continue
		}
		cr.flights = append(cr.flights, f)
	}
}

// loaded is what a loader has for a key.
type loaded[V any] struct {
	value  V
	absent bool
	item   item
	err    error // it cannot be stored
}

// call calls the loader for all crews, and lands them.
func (c *Cache[V]) call(ctx context.Context, crews []*crew[V], load BatchLoader[V], opts []CallOption) {
	var keys []string
	for _, cr := range crews {
		keys = append(keys, keysOf(cr.flights)...)
	}
	if len(keys) == 0 {
		return
	}
	got, err := call(ctx, &c.stats, func(ctx context.Context) (map[string]loaded[V], error) {
		values, err := load(ctx, keys)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		// Here, since codecs and TagsOf may panic as loaders do.
		got := make(map[string]loaded[V], len(keys))
		for _, key := range keys {
			value, ok := values[key]
			l := loaded[V]{value: value, absent: !ok}
			l.item, l.err = c.item(value, !ok, opts)
			got[key] = l
		}
		return got, nil
	})
	each(crews, func(cr *crew[V]) {
		items := make([]item, len(cr.flights))
		for i, f := range cr.flights {
			if err != nil {
				if f.ends == 0 || now() >= f.ends { // else what it was to renew is still good
					f.err = &LoadError{err}
				}
				continue
			}
			l := got[f.key]
			if items[i], f.err = l.item, l.err; f.err == nil {
				f.value, f.absent, f.body = l.value, l.absent, l.item.body
			}
			if f.absent {
				c.drop(f.key) // or a load that fails would bring back what is no more
			}
		}
		if err == nil {
			c.finish(ctx, cr, items, opts)
		} else {
			c.release(cr)
		}
		for _, f := range cr.flights {
			c.land(f)
		}
	})
}

// detach is a context for a load: with the values of ctx, but not its end.
func (c *Cache[V]) detach(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, c.opts.LoadTimeout)
	stop := context.AfterFunc(c.ctx, func() { end(ErrClosed) })
	return ctx, func() { stop(); cancel(); end(nil) }
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
		out.err = context.Cause(ctx)
	}
	if out.err != nil && !errors.Is(out.err, ErrNotFound) {
		stats.loadErrors.Add(1)
	}
	return out.value, out.err
}

// lease asks for values or markers of keys; what has the head given in over counts
// as missing. New markers have the token that is returned.
func (c *Cache[V]) lease(ctx context.Context, r route, keys, over, tags []string) (reply *scriptReply, own string, err error) {
	var token [tokenSize]byte
	rand.Read(token[:])
	args := append([]string{strconv.FormatInt(c.opts.LoadTimeout.Milliseconds(), 10), string(token[:])}, over...)
	sc, places, args := c.scriptFor(&script.Lease, &script.TaggedLease, tags, c.opts.LoadTimeout, c.places(keys), args)
	reply, err = r.call(ctx, sc, places, args...)
	if err == nil && len(reply.rest) != len(keys) {
		err = errReply
	}
	return reply, string(token[:]), err
}

var errReply = errors.New("a script's reply is short")

// item is a value, or what a loader says does not exist, for the shard. A life of 0
// keeps none.
func (c *Cache[V]) item(value V, absent bool, opts []CallOption) (item, error) {
	life, tags, of, err := c.callOpts(opts)
	if err == nil && of != nil && !absent {
		tags, err = checkTags(append(of(value), tags...))
	}
	if err != nil {
		return item{}, err
	}
	if absent {
		if c.opts.NegativeTTL < 0 {
			return item{tags: tags}, nil
		}
		return item{withTags(absentBody, tags), milliseconds(c.opts.jittered(c.opts.NegativeTTL)), tags}, nil
	}
	body, err := c.coder.encode(value)
	if err != nil {
		return item{}, err
	}
	return item{withTags(body, tags), life, tags}, nil
}

// finish stores loaded values where nothing was written since their load began,
// and takes those into L1.
func (c *Cache[V]) finish(ctx context.Context, cr *crew[V], items []item, opts []CallOption) {
	at := now()
	if c.off.marker {
		c.remark(ctx, cr)
	}
	var which []int
	for i, f := range cr.flights {
		switch {
		case f.err != nil:
		case f.stands == "" && f.blind():
			c.finishBlind(cr.route, f, items[i], at)
		case f.stands != "":
			which = append(which, i)
		}
	}
	if len(which) == 0 {
		return
	}
	v := cr.synced()
	heard := int64(0)
	if _, _, of, _ := c.callOpts(opts); of != nil {
		heard = notAsked
	}
	for len(which) > 0 {
		reply, err := c.fill(ctx, cr, which, items, heard)
		if err != nil {
			return // the value was loaded, which is what counts
		}
		var rest []int
		for n, i := range which {
			f, it := cr.flights[i], items[i]
			if reply.rest[n] != int64(1) {
				if rest = append(rest, i); heard != notAsked {
					c.refused(cr.remote, f.key)
				}
				continue
			}
			c.stats.fills.Add(1)
			if v != nil && v.epoch.Load() == reply.epoch && it.life > 0 {
				if e := c.bodyEntry(cr.route, v, it.body, reply.sequence, at, int64(cr.life(it.life))); e != nil {
					c.remember(v, f.key, e)
				}
			}
		}
		if heard != notAsked || len(rest) == 0 {
			return
		}
		which, heard = rest, c.vouch(ctx, cr, rest, items, reply.sequence)
	}
}

// notAsked has tagged_fill.lua leave what it does not store as it is, for another
// attempt.
const notAsked = -1

// fill stores values of a crew, as tagged_fill.lua says where they have tags.
func (c *Cache[V]) fill(ctx context.Context, cr *crew[V], which []int, items []item, heard int64) (*scriptReply, error) {
	var places, args []string
	var some []item
	for _, i := range which {
		f, it := cr.flights[i], items[i]
		some, places = append(some, it), append(places, c.place(f.key))
		args = append(args, f.stands, strconv.FormatInt(cr.life(it.life).Milliseconds(), 10), it.body)
	}
	reply, err := c.runFill(ctx, cr.route, places, args, some, heard)
	if err == nil && len(reply.rest) != len(which) {
		err = errReply
	}
	return reply, err
}

func (c *Cache[V]) runFill(ctx context.Context, r route, places, args []string, items []item, heard int64) (*scriptReply, error) {
	tags := tagsAmong(items)
	if len(tags) > 0 {
		args = append(args, strconv.FormatInt(heard, 10))
	}
	sc, places, args := c.scriptFor(&script.Fill, &script.TaggedFill, tags, r.life(longest(items)), places, args)
	return r.call(ctx, sc, places, args...)
}

// vouch returns the sequence if this process has heard of every tag that was
// invalidated from the beginning of the loads to there, and none was the items', else 0. It
// waits for notices that are on their way.
func (c *Cache[V]) vouch(ctx context.Context, cr *crew[V], which []int, items []item, sequence int64) int64 {
	v := cr.flights[which[0]].view
	for began := now(); v.heard.Load() < sequence; wait(ctx, time.Millisecond) {
		if cr.synced() != v || ctx.Err() != nil || now()-began > int64(c.opts.Heartbeat) {
			return 0
		}
	}
	if cr.synced() != v {
		return 0
	}
	for _, i := range which {
		if from := cr.flights[i].from; from < v.base || later(v.stripesOf(items[i].tags), from) {
			return 0
		}
	}
	return sequence
}

func (c *Cache[V]) refused(r *remote, key string) {
	c.stats.refusedFills.Add(1)
	c.events.tell(EventFillRefused, r.name, key, nil)
}

// finishBlind takes a value into L1 for one heartbeat, while its shard is not
// there to hold it.
func (c *Cache[V]) finishBlind(r route, f *flight[V], it item, at int64) {
	if it.life <= 0 {
		return
	}
	e := c.bodyEntry(r, f.view, it.body, 0, at, min(int64(it.life), int64(c.opts.Heartbeat)))
	if e == nil {
		return
	}
	e.blind = true
	c.rememberBlind(f.view, f.key, e, f.stripe, f.failed)
}

// remark takes markers anew, whatever happened since the load began: for tests,
// which show that this is wrong.
func (c *Cache[V]) remark(ctx context.Context, cr *crew[V]) {
	reply, _, err := c.lease(ctx, cr.route, keysOf(cr.flights), make([]string, len(cr.flights)), nil)
	if err != nil {
		return
	}
	for i, raw := range reply.rest {
		text, _ := raw.(string)
		if e, ok := parseEnvelope(text); ok && e.marker() {
			cr.flights[i].stands = e.payload
		}
	}
}
