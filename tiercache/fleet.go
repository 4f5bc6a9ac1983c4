package tiercache

import (
	"context"
	"strconv"
	"time"

	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// waits reports whether the flight is to wait for the process that left this
// marker. One that was waited for in vain is taken over from by the next lease,
// which only one gets. Time for a load of its own is left in any case.
func (c *Cache[V]) waits(ctx context.Context, f *flight[V], marker string) bool {
	if c.opts.FleetWait == 0 {
		return false
	}
	switch t := now(); {
	case f.rival != f.stands:
		f.rival, f.since, f.over = f.stands, t, ""
	case t-f.since >= int64(c.opts.FleetWait):
		f.over = marker[:headSize]
	}
	end, _ := ctx.Deadline()
	return time.Until(end) > c.opts.FleetWait
}

// release takes away the markers of a load that failed, since others wait for it.
func (c *Cache[V]) release(cr *crew[V]) {
	if c.opts.FleetWait == 0 {
		return
	}
	var places, args []string
	for _, f := range cr.flights {
		if f.leads {
			places = append(places, c.place(f.key))
			args = append(args, f.stands, strconv.Itoa(0), "")
		}
	}
	if len(places) > 0 {
		cr.call(c.ctx, &script.Fill, places, args...)
	}
}
