package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
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
	kinds    []int // by variant

	mu        sync.Mutex
	origin    int64 // when measuring began, nanoseconds since the start of the run
	count     int64
	last      int64      // the latest end seen
	totals    [][]timing // by variant, kind
	rounds    [][]timing // by round, variant
	intervals [][][]*intervalHistogram
}

func newStore(c *Options, rounds int, kinds []int) *store {
	s := &store{open: c.Load.Mode == Open, limit: c.MaxLatency, interval: int64(c.Interval), kinds: kinds}
	s.totals = make([][]timing, len(kinds))
	for v, n := range kinds {
		for range n {
			s.totals[v] = append(s.totals[v], newTiming(s.limit))
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
		s.at(int(max(sm.end-s.origin, 0) / s.interval))[sm.variant][sm.kind].record(sm.response())
	}
}

func (s *store) at(i int) [][]*intervalHistogram {
	for len(s.intervals) <= i {
		byVariant := make([][]*intervalHistogram, len(s.kinds))
		for v, n := range s.kinds {
			for range n {
				byVariant[v] = append(byVariant[v], &intervalHistogram{histogram: newHistogram(s.limit)})
			}
		}
		s.intervals = append(s.intervals, byVariant)
	}
	return s.intervals[i]
}

// compact shrinks the intervals that ended well before now. A sample that still arrives for one unpacks it again.
func (s *store) compact(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.intervals {
		if s.origin+int64(i+2)*s.interval > now {
			break
		}
		for _, byKind := range s.intervals[i] {
			for _, h := range byKind {
				h.pack()
			}
		}
	}
}

func (s *store) seen() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// intervalHistogram is a histogram that shrinks to about 1 kB when no longer written to: an hour holds thousands.
type intervalHistogram struct {
	*histogram
	packed string
}

func (h *intervalHistogram) record(v int64) {
	h.unpack()
	h.histogram.record(v)
}

func (h *intervalHistogram) pack() {
	if h.packed == "" && h.h != nil {
		if h.packed = h.encode(); h.packed != "" {
			h.h = nil
		}
	}
}

func (h *intervalHistogram) unpack() {
	if h.packed == "" {
		return
	}
	full, err := hdrhistogram.Decode([]byte(h.packed))
	if err != nil {
		panic("bench: a histogram of this process does not decode: " + err.Error())
	}
	h.h, h.packed = full, ""
}
