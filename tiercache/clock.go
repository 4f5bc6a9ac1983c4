package tiercache

import (
	"sync/atomic"
	"time"
)

// shardClock tells a shard's clock from this process's monotonic one, within
// the round trip in which it was asked.
type shardClock struct {
	sample atomic.Pointer[clockSample]
}

// A clockSample says that the shard's clock read at (ns) at some moment between
// sent and received (ns of the process).
type clockSample struct{ sent, received, at int64 }

// precision is what a shard's clock leaves out: it counts whole us.
const precision = 999

// sampleLife is after how many heartbeats a newer sample counts, even if it took
// longer: two clocks drift apart.
const sampleLife = 16

// learn takes a new sample if it is better, or contradicts the last: a clock was
// set. sure makes it taken in any case.
func (c *shardClock) learn(sent, received, us int64, heartbeat time.Duration, sure bool) {
	s := &clockSample{sent, received, us * 1000}
	old := c.sample.Load()
	if sure || old == nil || received-sent <= old.received-old.sent || received-old.received > sampleLife*int64(heartbeat) ||
		s.at-received > old.at+precision-old.sent || s.at+precision-sent < old.at-old.received {
		c.sample.Store(s)
	}
}

func (c *shardClock) known() bool { return c.sample.Load() != nil }

// latest is the latest that the shard's clock may read at now, in ns.
func (c *shardClock) latest(now int64) int64 {
	s := c.sample.Load()
	return s.at + precision + (now - s.sent)
}

// earliestAt and latestAt are when, by the process's clock, the shard's read us.
func (c *shardClock) earliestAt(us int64) int64 {
	s := c.sample.Load()
	return us*1000 - s.at - precision + s.sent
}

func (c *shardClock) latestAt(us int64) int64 {
	s := c.sample.Load()
	return us*1000 + precision - s.at + s.received
}

// earliest is the earliest that it may read then.
func (c *shardClock) earliest(now int64) int64 {
	s := c.sample.Load()
	return s.at + (now - s.received)
}
