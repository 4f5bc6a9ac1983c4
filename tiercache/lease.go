package tiercache

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// ErrLease means that Fill came too late: the key was written, deleted, filled or
// evicted since the lease was given, or the lease has expired.
var ErrLease = errors.New("tiercache: the lease is over: the key was written, deleted, filled or evicted since, or it took too long")

// Found is what GetOrLease has for a key.
type Found[V any] struct {
	Value V

	// Left is the rest of the value's life, short of it by a round trip at most.
	Left time.Duration

	// Lease is for Fill, where there is no value. It is 16 bytes, not text.
	Lease string
}

// GetOrLease is Get for who loads a value elsewhere, such as a caller over HTTP.
// Without a value it is ErrNotFound, and Found.Lease, under which Fill stores
// one. A lease lasts for Options.LoadTimeout; who asks meanwhile gets the same.
// There is none where a loader said that the key has no value, for as long as
// that is remembered. Tags that Fill is to give to the value are given here, too.
func (c *Cache[V]) GetOrLease(ctx context.Context, key string, opts ...CallOption) (f Found[V], err error) {
	if e := c.hit(key); e != nil {
		c.stats.localHits.add()
		f.Left = time.Duration(e.expires - now())
		f.Value, err = c.value(e)
		return f, err
	}
	tags, err := tagsOf(opts)
	if err == nil {
		err = c.closed()
	}
	if err != nil {
		return f, err
	}
	r := c.route(key)
	held, err := c.fetch(ctx, r, key)
	if err != nil {
		return f, &ShardError{r.name, "get", err}
	}
	if !held.found {
		v := r.synced()
		reply, _, err := c.lease(ctx, r, []string{key}, []string{held.over}, tags)
		if err != nil {
			return f, &ShardError{r.name, "lease", err}
		}
		rd := reply.reading()
		if err := r.judge(ctx, rd); err != nil {
			return f, &ShardError{r.name, "lease", err}
		}
		text, _ := rd.values[0].(string)
		if e, ok := parseEnvelope(text); ok && e.marker() {
			f.Lease = e.payload
			return f, ErrNotFound
		}
		held = c.accept(r, v, rd, key, rd.values[0])
	}
	if !held.found || held.absent {
		return f, ErrNotFound
	}
	f.Left, f.Value = time.Duration(max(held.ends-now(), 0)), held.value
	return f, nil
}

// Fill stores the value if the key's lease still stands, and is ErrLease if it
// does not. It is no write: it replaces nothing. With any other error the
// outcome is unknown.
func (c *Cache[V]) Fill(ctx context.Context, key, lease string, value V, opts ...CallOption) error {
	it, err := c.prepare(value, opts)
	if err == nil {
		err = c.closed()
	}
	if err != nil {
		return err
	}
	r := c.route(key)
	v := r.synced()
	at := now()
	if len(lease) != tokenSize {
		return ErrLease
	}
	life := r.life(it.life)
	args := []string{lease, strconv.FormatInt(life.Milliseconds(), 10), it.body}
	reply, err := c.runFill(ctx, r, []string{c.place(key)}, args, []item{it}, 0)
	switch {
	case err != nil:
		return &ShardError{r.name, "fill", err}
	case len(reply.rest) != 1:
		return &ShardError{r.name, "fill", errReply}
	case reply.rest[0] != int64(1):
		c.refused(r.remote, key)
		return ErrLease
	}
	c.stats.fills.Add(1)
	if v != nil && v.epoch.Load() == reply.epoch {
		if e := c.bodyEntry(r, v, it.body, reply.sequence, at, int64(life)); e != nil {
			c.remember(v, key, e)
		}
	}
	return nil
}
