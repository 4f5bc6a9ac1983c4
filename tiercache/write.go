package tiercache

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// Set stores the value on the key's shard, tells every process that may hold an
// older one, and takes it into L1.
//
// With an error the outcome is unknown: the value may be stored or not, but not
// after the deadline (ctx's or Options.Timeout, whichever is first). ErrLate and
// ErrUnavailable mean that it is not.
func (c *Cache[V]) Set(ctx context.Context, key string, value V, opts ...CallOption) error {
	it, err := c.prepare(value, opts)
	if err != nil {
		return err
	}
	return c.write(ctx, "set", c.route(key), []string{key}, []item{it})
}

// Delete removes the key's value everywhere. Errors are as for Set.
func (c *Cache[V]) Delete(ctx context.Context, key string) error {
	return c.write(ctx, "delete", c.route(key), []string{key}, []item{{}})
}

// SetMany is Set for many values: one atomic step for up to 500 of a shard's
// keys. The error is a *KeysError.
func (c *Cache[V]) SetMany(ctx context.Context, values map[string]V, opts ...CallOption) error {
	failed := KeysError{Op: "set"}
	keys := make([]string, 0, len(values))
	items := make([]item, 0, len(values))
	for key, value := range values {
		it, err := c.prepare(value, opts)
		if err != nil {
			failed.add(err, key)
			continue
		}
		keys, items = append(keys, key), append(items, it)
	}
	c.writeMany(ctx, &failed, keys, items)
	return failed.orNil()
}

// DeleteMany is Delete for many keys, as SetMany is for Set.
func (c *Cache[V]) DeleteMany(ctx context.Context, keys ...string) error {
	failed := KeysError{Op: "delete"}
	c.writeMany(ctx, &failed, keys, make([]item, len(keys)))
	return failed.orNil()
}

func (c *Cache[V]) prepare(value V, opts []CallOption) (item, error) {
	return c.item(value, false, opts)
}

// A step of a write on many keys holds at most so many, and so many bytes unless
// one value has more: the server does nothing else meanwhile.
const (
	maxStepKeys  = 500
	maxStepBytes = 1 << 20
)

func (c *Cache[V]) writeMany(ctx context.Context, failed *KeysError, keys []string, items []item) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, group := range c.routing.Load().group(keys) {
		wg.Go(func() {
			rest := group.keys
			for len(rest) > 0 {
				n, size := 0, 0
				var stepKeys []string
				var stepItems []item
				for n < len(rest) && n < maxStepKeys && (n == 0 || size+len(items[rest[n]].body) <= maxStepBytes) {
					stepKeys, stepItems = append(stepKeys, keys[rest[n]]), append(stepItems, items[rest[n]])
					size += len(items[rest[n]].body)
					n++
				}
				rest = rest[n:]
				if err := c.write(ctx, failed.Op, group.route, stepKeys, stepItems); err != nil {
					mu.Lock()
					failed.add(err, stepKeys...)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
}

// item is what a key is to hold. A life of 0 means nothing.
type item struct {
	body string
	life time.Duration
	tags []string
}

// write sets or deletes keys of one route, and deletes them wherever else they would
// be read.
func (c *Cache[V]) write(ctx context.Context, op string, r route, keys []string, items []item) error {
	places := c.places(keys)
	err := c.writeAt(ctx, op, r, keys, places, items)
	if errors.Is(err, errRouted) && ctx.Err() == nil {
		return c.writeAnew(ctx, op, keys, items)
	}
	if err == nil {
		err = c.eraseAhead(ctx, op, r, keys, places)
	}
	return err
}

// writeAt sets or deletes keys where the route leads. errRouted means that nothing was
// done.
func (c *Cache[V]) writeAt(ctx context.Context, op string, r route, keys, places []string, items []item) error {
	if err := c.closed(); err != nil {
		return err
	}
	// Before the write, which voids the marker of who had asked there in between.
	erased := c.eraseBefore(ctx, keys, places)
	v := r.synced()
	began := now()
	reply, err := c.writeTo(ctx, r, places, items)
	if errors.Is(err, errRouted) && ctx.Err() == nil {
		return err
	}
	// From here on, whoever asks this process must not get what was there before.
	present := r.view.Load()
	if err != nil {
		present.failed.Add(1)
		for _, key := range keys {
			present.flights.forget(key)
			c.drop(key)
		}
		c.owe(r, places)
		return &ShardError{r.name, op, err}
	}
	r.leftNotes()
	r.doubt(v, reply.epoch)
	for i, key := range keys {
		present.wrote(key, reply.sequence)
		c.wrote(r.remote, key, reply.sequence)
		c.drop(key)
		if items[i].life > 0 && v != nil && v.epoch.Load() == reply.epoch {
			if e := c.bodyEntry(r, v, items[i].body, reply.sequence, began, int64(r.life(items[i].life))); e != nil {
				c.remember(v, key, e)
			}
		}
	}
	c.rewrite(ctx, r, reply, keys, items)
	if c.routing.Load().list != r.list { // meanwhile
		erased = errors.Join(erased, c.eraseBefore(ctx, keys, places))
	}
	c.echo(ctx, r.remote, keys, places)
	if erased != nil {
		return &ShardError{r.name, op, unknown(erased)}
	}
	return nil
}

// eraseAhead deletes keys that were written where the route led at the shards that
// answer for them by now, or are about to: notes may have been read there before this
// write left its own. With an error others may still get there what was overwritten.
func (c *Cache[V]) eraseAhead(ctx context.Context, op string, r route, keys, places []string) error {
	returning := r.returningAhead() // before routes are asked for: a shard returns first, and then has them
	var ahead map[*remote][]int
	for i, key := range keys {
		next := c.route(key).remote
		if next == r.remote && len(returning) == 0 {
			continue
		}
		if ahead == nil {
			ahead = map[*remote][]int{}
		}
		for _, to := range returning {
			ahead[to] = append(ahead[to], i)
		}
		if next != r.remote && !slices.Contains(returning, next) {
			ahead[next] = append(ahead[next], i)
		}
	}
	var errs []error
	for to, list := range ahead {
		own := make([]string, len(list))
		for n, i := range list {
			own[n] = places[i]
		}
		sequence, err := to.erase(ctx, own)
		present := to.view.Load()
		if err != nil {
			present.failed.Add(1)
			c.owe(route{remote: to}, own)
			errs = append(errs, &ShardError{to.name, op, unknown(err)})
		}
		for _, i := range list {
			present.wrote(keys[i], sequence)
			c.wrote(to, keys[i], sequence)
			c.drop(keys[i])
		}
	}
	return errors.Join(errs...)
}

// unknown is an error of what came after a write: it was made, whatever err says.
func unknown(err error) error {
	if errors.Is(err, ErrLate) || errors.Is(err, ErrUnavailable) {
		return errors.New(err.Error())
	}
	return err
}

// writeAnew is write by the routes that keys have now.
func (c *Cache[V]) writeAnew(ctx context.Context, op string, keys []string, items []item) error {
	for _, group := range c.routing.Load().group(keys) {
		var own []string
		var ownItems []item
		for _, i := range group.keys {
			own, ownItems = append(own, keys[i]), append(ownItems, items[i])
		}
		if err := c.write(ctx, op, group.route, own, ownItems); err != nil {
			return err
		}
	}
	return nil
}

// bodyEntry is an entry of a body that was stored on the shard; nil if it does not
// decode what it encoded, which readers will find out.
func (c *Cache[V]) bodyEntry(r route, v *view, body string, sequence, at, life int64) *entry[V] {
	absent, codec, payload := body[0]&flagAbsent != 0, body[1], payloadOf(body)
	var value V
	if c.coder.keep && !absent {
		var err error
		if value, err = c.coder.decode(codec, payload); err != nil {
			return nil
		}
	}
	return c.newEntry(r, v, value, codec, payload, absent, tagsIn(body), sequence, at, life)
}

func (c *Cache[V]) writeTo(ctx context.Context, r route, places []string, items []item) (*scriptReply, error) {
	ctx, cancel := r.deadlines.limit(ctx)
	defer cancel()
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	args := make([]string, 2, 4+2*len(places))
	args[1] = r.channel
	for _, it := range items {
		args = append(args, strconv.FormatInt(r.life(it.life).Milliseconds(), 10), it.body)
	}
	sc, places, args := c.scriptFor(&script.Write, &script.TaggedWrite, tagsAmong(items), r.life(longest(items)), places, args)
	for attempt := 0; ; attempt++ {
		args[0] = strconv.FormatInt(r.deadline(ctx), 10)
		reply, err := r.call(ctx, sc, places, args...)
		if err != nil {
			return nil, err
		}
		if reply.epoch != 0 {
			return reply, nil
		}
		// Late, or the shard's clock was set: nothing was done, and the clock is known now.
		if attempt > 0 || ctx.Err() != nil {
			return nil, ErrLate
		}
		r.clock.learn(reply.sent, reply.received, reply.us, c.opts.Heartbeat, true)
	}
}
