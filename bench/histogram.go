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
	h     *hdrhistogram.Histogram // nil until something is recorded: it takes 250 kB
	sum   float64
	low   int64
	high  int64
	out   int64
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
		h.h = h.empty()
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
			h.h = h.empty()
		}
		h.out += h.h.Merge(from.h)
	}
}

func (h *histogram) empty() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, max(h.limit, 2), significantDigits)
}

func (h *histogram) quantile(percent float64) float64 {
	if h.h == nil {
		return 0
	}
	return float64(h.h.ValueAtPercentile(percent))
}

func (h *histogram) mean() float64 {
	if h.h == nil {
		return 0
	}
	return h.sum / float64(h.h.TotalCount())
}

// latency summarises; the encoded histogram is left out.
func (h *histogram) latency() Latency {
	l := Latency{OutOfRange: h.out, Min: time.Duration(h.low), Max: time.Duration(h.high)}
	if h.h == nil {
		return l
	}
	l.Count = h.h.TotalCount()
	l.Mean = h.mean()
	q := h.h.ValueAtPercentilesSlice([]float64{50, 90, 99, 99.9})
	for i, p := range []*time.Duration{&l.P50, &l.P90, &l.P99, &l.P999} {
		// The histogram answers with the top of a bucket, which may lie above everything that was recorded.
		*p = time.Duration(min(q[i], h.high))
	}
	return l
}

func (h *histogram) encode() string {
	full := h.h
	if full == nil {
		full = h.empty()
	}
	b, err := full.EncodeV2()
	if err != nil {
		// Only a histogram with counts beyond int64 fails to encode.
		return ""
	}
	return string(b)
}
