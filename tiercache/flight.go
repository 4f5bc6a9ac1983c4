package tiercache

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A flight is the load of one key, for all in this process who ask while it is
// under way.
type flight[V any] struct {
	key                 string
	routing             *routing
	home                *view // whose flight it is
	tags                []string
	before              []int64 // when each was last invalidated before the flight began
	began               int64   // ns
	heard               bool    // notices arrived then
	last, invalidations int64   // view.heard and view.invalidations, then

	silent  chan struct{} // closed once the shard has not answered
	losing  sync.Once
	done    chan struct{} // closed with the outcome
	resting bool          // it failed, and is not tried again yet; of the flights' mutex

	// What the view knew of the key before the loader was called.
	view           *view
	stripe, failed int64
	from           int64 // the sequence: what was written up to there, the loader sees

	// What the shard held.
	asked  bool
	over   string // as in found
	stands string // while nothing is written: a marker's token, or the head of the value that is renewed
	renews bool   // a value ahead of its end
	ends   int64  // when that is, ns
	leads  bool   // the marker is the flight's own
	rival  string // the token of another, whose value is waited for
	since  int64  // when it was first seen, ns

	// The outcome.
	value  V
	body   string // of the envelope, for those who need copies
	absent bool
	err    error
}

// take makes what a shard holds the outcome.
func (f *flight[V]) take(got *found[V]) {
	f.value, f.body, f.absent = got.value, got.text[headSize:], got.absent
}

// flights are those of the keys of a view, each a *flight[V]. A write ends its key's
// for who asks later, and a new view all of them.
type flights struct {
	mu    sync.Mutex
	byKey map[string]any
}

func (fs *flights) forget(key string) {
	fs.mu.Lock()
	delete(fs.byKey, key)
	fs.mu.Unlock()
}

// remove takes f away if it is still key's.
func (fs *flights) remove(key string, f any) {
	fs.mu.Lock()
	if fs.byKey[key] == f {
		delete(fs.byKey, key)
	}
	fs.mu.Unlock()
}

// A boarded flight is as one caller has it.
type boarded[V any] struct {
	*flight[V]
	own  bool // it is new, and the caller has to see to it
	late bool // a tag was invalidated since it began
}

// join returns key's flight, or a new one. Where notices arrive, a write ends a flight. Where they do not, it takes
// passengers for a heartbeat, so that nobody gets a value that was read long
// before he asked.
func (c *Cache[V]) join(key string, tags []string) boarded[V] {
	rs := c.routing.Load()
	r := rs.route(key)
	v := r.view.Load()
	t := now()
	heard := r.counts(v.generation, t)
	v.flights.mu.Lock()
	defer v.flights.mu.Unlock()
	if f, _ := v.flights.byKey[key].(*flight[V]); f != nil && f.routing == rs && !f.outdated() {
		if f.resting && c.fallback(f) != nil || !f.resting && (f.heard && heard || t-f.began < int64(c.opts.Heartbeat)) {
			return boarded[V]{flight: f, late: f.invalidations != v.invalidations.Load()}
		}
	}
	f := &flight[V]{
		key: key, routing: rs, home: v, began: t, heard: heard, tags: tags,
		invalidations: v.invalidations.Load(), last: v.heard.Load(),
		silent: make(chan struct{}), done: make(chan struct{}),
	}
	for _, tag := range tags {
		f.before = append(f.before, v.tag(tag).Load())
	}
	if v.flights.byKey == nil {
		v.flights.byKey = make(map[string]any)
	}
	v.flights.byKey[key] = f
	return boarded[V]{flight: f, own: true}
}

// outdated reports whether a tag was invalidated since the flight began: who asks
// now is to have another.
func (f *flight[V]) outdated() bool {
	for i, tag := range f.tags {
		if f.home.tag(tag).Load() > f.before[i] {
			return true
		}
	}
	return false
}

// errOutdated is for who boarded late, and is to have another flight.
var errOutdated = errors.New("tiercache: a tag of the value was invalidated before it was asked for")

// disowned reports whether a tag that the outcome has was invalidated since the flight
// began. Which it has was not known then.
func (f *flight[V]) disowned() bool { return later(f.home.stripesOf(tagsIn(f.body)), f.last) }

// land ends a flight: who asks after those on board were told begins another. One
// that failed, where there is a value of before, stays for a heartbeat: what stands
// behind is not asked again at once.
func (c *Cache[V]) land(f *flight[V]) {
	defer close(f.done)
	fs := &f.home.flights
	if f.err == nil || c.fallback(f) == nil {
		fs.remove(f.key, f)
		return
	}
	fs.mu.Lock()
	f.resting = true
	fs.mu.Unlock()
	time.AfterFunc(c.opts.Heartbeat, func() { fs.remove(f.key, f) })
}

// lose notes that the shard does not answer.
func (f *flight[V]) lose() { f.losing.Do(func() { close(f.silent) }) }

// blind reports whether the shard did not answer.
func (f *flight[V]) blind() bool {
	select {
	case <-f.silent:
		return true
	default:
		return false
	}
}

// wait returns what the flight brings. late is closed after Options.SoftTimeout,
// nil without. The first caller, whose the flight is, has the loaded value itself.
func (c *Cache[V]) wait(ctx context.Context, b boarded[V], late <-chan struct{}) (V, error) {
	var zero V
	f := b.flight
	var silent chan struct{}
	for {
		select {
		case <-f.done:
			if f.err != nil {
				c.probe(ctx, f)
				if e := c.fallback(f); e != nil {
					return c.stale(e)
				}
				return zero, f.err
			}
			switch {
			case b.late && f.disowned():
				return zero, errOutdated
			case f.absent:
				return zero, ErrNotFound
			case b.own || c.coder.keep:
				return f.value, nil
			}
			return c.coder.decode(f.body[1], payloadOf(f.body))
		case <-late:
			if e := c.fallback(f); e != nil {
				return c.stale(e)
			}
			late, silent = nil, f.silent
			c.behind(func() { c.probe(c.ctx, f) })
		case <-silent: // which was not known before
			silent = nil
			if e := c.fallback(f); e != nil {
				return c.stale(e)
			}
		case <-ctx.Done():
			return zero, ctx.Err()
		}
	}
}

// soft is a channel that closes after Options.SoftTimeout, and its end.
func (c *Cache[V]) soft() (<-chan struct{}, func() bool) {
	if c.opts.SoftTimeout == 0 {
		return nil, func() bool { return false }
	}
	late := make(chan struct{})
	return late, time.AfterFunc(c.opts.SoftTimeout, func() { close(late) }).Stop
}

// fallback is the value of before, if that may be given in place of one that
// cannot be had. While the shard answers, it has to be the last that was written, as
// far as L1 can know of any. While it does not, it is from the last time that this
// process heard of every write.
func (c *Cache[V]) fallback(f *flight[V]) *entry[V] {
	e, counts := c.held(f.key)
	if counts || f.blind() {
		return e
	}
	return nil
}

// probe asks the shard whether it still answers, as it did when the flight began, if
// a value of before depends on that.
func (c *Cache[V]) probe(ctx context.Context, f *flight[V]) {
	if e, counts := c.held(f.key); e == nil || counts || f.blind() {
		return
	}
	if _, err := c.route(f.key).hello(ctx); err != nil && ctx.Err() == nil {
		f.lose()
	}
}

// held is the value that L1 has of key, past its life or not, if no write is known
// that it may be from before, and whether there can be none.
func (c *Cache[V]) held(key string) (e *entry[V], counts bool) {
	if c.opts.StaleFor == 0 {
		return nil, false
	}
	e, ok := c.local.GetIfPresent(key)
	t := now()
	if !ok || e.absent || t >= e.expires+int64(c.opts.StaleFor) || e.generation < e.remote.unbroken.Load() || later(e.tags, e.sequence) ||
		e.stand != nil && e.stand.routing != c.routing.Load() {
		return nil, false
	}
	return e, e.remote.counts(e.generation, t)
}

func (c *Cache[V]) stale(e *entry[V]) (V, error) {
	c.stats.stale.Add(1)
	return c.value(e)
}
