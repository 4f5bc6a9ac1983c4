package bench

import (
	"sync"
	"time"
)

// sample is one operation that succeeded. Times are nanoseconds since the start of the run.
type sample struct {
	intended, start, end int64
	round                int32
	variant, kind        uint8
}

func (s sample) response() int64 { return s.end - s.intended }
func (s sample) service() int64  { return s.end - s.start }

// recorder collects one worker's samples. Histograms are not safe for concurrent use and take 250 kB each, too much for
// one per worker, variant, kind and interval; so workers buffer what they saw and record it in batches.
type recorder struct {
	mu    sync.Mutex
	buf   []sample
	store *store
}

func newRecorder(s *store) *recorder { return &recorder{buf: make([]sample, 0, 512), store: s} }

func (r *recorder) add(s sample) {
	r.mu.Lock()
	r.buf = append(r.buf, s)
	if len(r.buf) == cap(r.buf) {
		r.flushLocked()
	}
	r.mu.Unlock()
}

func (r *recorder) flush() {
	r.mu.Lock()
	r.flushLocked()
	r.mu.Unlock()
}

func (r *recorder) flushLocked() {
	if len(r.buf) > 0 {
		r.store.record(r.buf)
		r.buf = r.buf[:0]
	}
}

// timing is a pair of histograms. A closed loop has no intended start, so response is service time there and service
// stays empty.
type timing struct{ response, service *histogram }

func newTiming(limit time.Duration) timing {
	return timing{newHistogram(limit), newHistogram(limit)}
}

func (t timing) record(s sample, open bool) {
	t.response.record(s.response())
	if open {
		t.service.record(s.service())
	}
}

func (t timing) merge(from timing) {
	t.response.merge(from.response)
	t.service.merge(from.service)
}

// store is what all recorders of a run flow into.
type store struct {
	open     bool
	limit    time.Duration
	interval int64

	mu        sync.Mutex
	origin    int64 // when measuring began, nanoseconds since the start of the run
	count     int64
	last      int64       // the latest end seen
	totals    [][]timing  // by variant, kind
	rounds    [][]timing  // by round, variant
	intervals [][]*series // by variant, kind
}

// newStore takes the number of kinds of each variant.
func newStore(c *Options, rounds int, kinds []int) *store {
	s := &store{open: c.Load.Mode == Open, limit: c.MaxLatency, interval: int64(c.Interval)}
	s.totals, s.intervals = make([][]timing, len(kinds)), make([][]*series, len(kinds))
	for v, n := range kinds {
		for range n {
			s.totals[v] = append(s.totals[v], newTiming(s.limit))
			s.intervals[v] = append(s.intervals[v], newSeries(s.limit))
		}
	}
	s.rounds = make([][]timing, rounds)
	for r := range s.rounds {
		for range kinds {
			s.rounds[r] = append(s.rounds[r], newTiming(s.limit))
		}
	}
	return s
}

func (s *store) begin(origin int64) {
	s.mu.Lock()
	s.origin = origin
	s.mu.Unlock()
}

func (s *store) record(batch []sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sm := range batch {
		s.count++
		s.last = max(s.last, sm.end)
		s.totals[sm.variant][sm.kind].record(sm, s.open)
		if int(sm.round) < len(s.rounds) {
			s.rounds[sm.round][sm.variant].record(sm, s.open)
		}
		s.intervals[sm.variant][sm.kind].record(s.intervalOf(sm.end), sm.response())
	}
}

func (s *store) intervalOf(at int64) int { return int(max(at-s.origin, 0) / s.interval) }

func (s *store) seen() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// series is the intervals of one kind of one variant. The latest one is dense for speed; older ones are packed, as an hour
// has thousands of them.
type series struct {
	latest *histogram
	older  []*histogram
}

func newSeries(limit time.Duration) *series { return &series{latest: newHistogram(limit)} }

func (s *series) record(interval int, v int64) {
	s.reach(interval)
	if interval < len(s.older) {
		// A worker was held up between looking at the clock and handing in what it saw.
		s.older[interval].record(v)
		return
	}
	s.latest.record(v)
}

// reach makes the given interval the latest one, unless it is past already.
func (s *series) reach(interval int) {
	for len(s.older) < interval {
		s.older = append(s.older, s.latest.pack())
	}
}

// all ends the series after n intervals.
func (s *series) all(n int) []*histogram {
	s.reach(n)
	return s.older
}
