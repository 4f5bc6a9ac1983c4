package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are kept to 3 significant digits, from 1 ns.
const significantDigits = 3

// histogram adds to an HdrHistogram what that one cannot tell: the exact extremes and sum, and what did not fit.
type histogram struct {
	limit int64
	h     counts // nil until something is recorded
	sum   float64
	low   int64
	high  int64
	out   int64
}

// counts is a dense HdrHistogram (7 ns a record, 250 kB) or a packed one (80 ns, a few kB).
type counts interface {
	RecordValue(int64) error
	TotalCount() int64
	ValueAtPercentilesSlice([]float64) []int64
	EncodeV2() ([]byte, error)
}

func newHistogram(limit time.Duration) *histogram { return &histogram{limit: int64(limit)} }

func (h *histogram) record(v int64) {
	if h.n() == 0 || v < h.low {
		h.low = v
	}
	h.high = max(h.high, v)
	if v > h.limit || v < 0 {
		h.out++
		return
	}
	if h.h == nil {
		h.h = h.dense()
	}
	if h.h.RecordValue(v) != nil {
		h.out++
		return
	}
	h.sum += float64(v)
}

// n counts everything seen, in range or not.
func (h *histogram) n() int64 {
	if h.h == nil {
		return h.out
	}
	return h.h.TotalCount() + h.out
}

// merge adds a dense histogram to a dense one.
func (h *histogram) merge(from *histogram) {
	if from.n() == 0 {
		return
	}
	if h.n() == 0 || from.low < h.low {
		h.low = from.low
	}
	h.high = max(h.high, from.high)
	h.out += from.out
	h.sum += from.sum
	if from.h != nil {
		if h.h == nil {
			h.h = h.dense()
		}
		h.out += h.h.(*hdrhistogram.Histogram).Merge(from.h.(*hdrhistogram.Histogram))
	}
}

// pack moves what a dense histogram holds to a packed one and leaves the dense one empty.
func (h *histogram) pack() *histogram {
	packed := *h
	packed.h = hdrhistogram.NewPacked(1, max(h.limit, 2), significantDigits)
	dense := h.h
	*h = histogram{limit: h.limit}
	if dense, ok := dense.(*hdrhistogram.Histogram); ok {
		packed.out += packed.h.(*hdrhistogram.PackedHistogram).MergeFrom(dense)
		dense.Reset()
		h.h = dense
	}
	return &packed
}

func (h *histogram) dense() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, max(h.limit, 2), significantDigits)
}

func (h *histogram) quantile(percent float64) float64 {
	if h.h == nil {
		return 0
	}
	return float64(h.h.ValueAtPercentilesSlice([]float64{percent})[0])
}

func (h *histogram) mean() float64 {
	if h.h == nil || h.h.TotalCount() == 0 {
		return 0
	}
	return h.sum / float64(h.h.TotalCount())
}

// latency summarises; the encoded histogram is left out.
func (h *histogram) latency() Latency {
	l := Latency{OutOfRange: h.out, Mean: h.mean(), Min: time.Duration(h.low), Max: time.Duration(h.high)}
	if h.h == nil {
		return l
	}
	l.Count = h.h.TotalCount()
	q := h.h.ValueAtPercentilesSlice([]float64{50, 90, 99, 99.9})
	for i, p := range []*time.Duration{&l.P50, &l.P90, &l.P99, &l.P999} {
		// The histogram answers with the top of a bucket, which may lie above everything that was recorded.
		*p = time.Duration(min(q[i], h.high))
	}
	return l
}

func (h *histogram) encode() string {
	c := h.h
	if c == nil {
		c = h.dense()
	}
	b, err := c.EncodeV2()
	if err != nil {
		// Only counts beyond int64 do not encode.
		return ""
	}
	return string(b)
}
