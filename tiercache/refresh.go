package tiercache

import (
	"context"
	"math"
	"math/rand/v2"
	"strconv"
	"time"
)

// aheadOf is when a value that ends after left ns, at expires, is due to be loaded
// again. Each process draws its own moment, so that few come at once.
func (c *Cache[V]) aheadOf(expires, left int64) int64 {
	if c.opts.RefreshAhead == 0 {
		return math.MaxInt64
	}
	ahead := float64(min(int64(c.opts.RefreshAhead), left/2))
	return expires - int64(ahead*(1-rand.Float64()/2))
}

// due reports whether the caller is to refresh e: the first who asks, once a
// heartbeat.
func (c *Cache[V]) due(e *entry[V]) bool {
	if c.opts.RefreshAhead == 0 || e.absent {
		return false
	}
	due, t := e.due.Load(), now()
	return t >= due && e.due.CompareAndSwap(due, t+int64(c.opts.Heartbeat))
}

// refresh loads keys behind, unless that is under way.
func (c *Cache[V]) refresh(ctx context.Context, keys []string, load BatchLoader[V], opts []CallOption) {
	_, tags, _, err := c.callOpts(opts)
	if err != nil {
		return
	}
	var own []*flight[V]
	for _, key := range keys {
		if b := c.join(key, tags); b.own {
			b.renews = true
			own = append(own, b.flight)
		}
	}
	if len(own) > 0 {
		c.fly(ctx, own, load, opts)
	}
}

// renew reports whether the flight is to load a value of which the shard holds this
// one. It is not if that is good for long, since another process was first, or if
// another is at it.
func (c *Cache[V]) renew(ctx context.Context, r route, f *flight[V], got *found[V]) bool {
	left := time.Duration(got.ends - now())
	if got.absent || left > c.opts.RefreshAhead {
		return false
	}
	claim := []string{
		"SET", c.opts.Namespace + "#refresh:" + f.key, "", "NX",
		"PX", strconv.FormatInt(milliseconds(min(left, c.opts.LoadTimeout)).Milliseconds(), 10),
	}
	if reply, err := r.do(ctx, claim); err != nil || reply != "OK" {
		return false
	}
	c.stats.refreshes.Add(1)
	f.stands, f.ends = got.text[:headSize], got.ends
	return true
}
