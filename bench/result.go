package bench

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what one scenario's run saw. All durations are nanoseconds in JSON, under names that end in _ns.
type Result struct {
	Scenario string `json:"scenario"`
	Doc      string `json:"doc,omitempty"`

	// Started is when warm-up began, Measured when measuring did. Ended is after the last operation of the load.
	Started  time.Time `json:"started"`
	Measured time.Time `json:"measured"`
	Ended    time.Time `json:"ended"`

	Settings    Settings        `json:"settings"`
	Variants    []VariantResult `json:"variants"`
	Comparisons []Comparison    `json:"comparisons,omitempty"`
	Generator   *Generator      `json:"generator,omitempty"` // open loop only
	Intervals   []Interval      `json:"intervals"`
	Events      []Event         `json:"events,omitempty"`
	Marks       []Mark          `json:"marks,omitempty"`
}

// Event is something that was done to the servers during a run, a fault for instance. Plots over time mark it.
type Event struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"` // a few words, such as "kill shard b"
}

// Settings repeats the options that shaped a run, defaults filled in.
type Settings struct {
	Load       Load          `json:"load"`
	Interval   time.Duration `json:"interval_ns"`
	MaxLatency time.Duration `json:"max_latency_ns"`
	Seed       uint64        `json:"seed"`
	Rounds     int           `json:"rounds"` // 0 with one variant
	SliceOps   int           `json:"slice_ops"`
	Confidence float64       `json:"confidence"`
	Threshold  float64       `json:"threshold"`
}

// VariantResult holds what one variant did, in all and by kind.
type VariantResult struct {
	Name string `json:"name"`
	Twin bool   `json:"twin,omitempty"` // the baseline's second instance

	// Rate is operations that succeeded per second of this variant's load.
	Rate float64 `json:"rate"`

	// Response is from the intended start in open loop, from the actual start in closed loop. Service, in open loop
	// only, is from the actual start.
	Response Latency  `json:"response"`
	Service  *Latency `json:"service,omitempty"`

	Kinds []KindResult `json:"kinds"`

	Errors   int64      `json:"errors"`
	Failures []Failures `json:"failures,omitempty"`

	// Counters per operation, with AllocsPerOp and BytesPerOp among them.
	Counters map[string]float64 `json:"counters,omitempty"`
}

// KindResult is the part of one kind.
type KindResult struct {
	Name     string   `json:"name"`
	Response Latency  `json:"response"`
	Service  *Latency `json:"service,omitempty"`
}

// Latency summarises operations that succeeded. Percentiles are right to 3 significant digits, the rest is exact.
type Latency struct {
	// Count is how many operations the percentiles and the mean speak of. OutOfRange is how many more were above
	// Options.MaxLatency: only Min and Max include them.
	Count      int64 `json:"count"`
	OutOfRange int64 `json:"out_of_range,omitempty"`

	Mean float64       `json:"mean_ns"`
	Min  time.Duration `json:"min_ns"`
	P50  time.Duration `json:"p50_ns"`
	P90  time.Duration `json:"p90_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	Max  time.Duration `json:"max_ns"`

	// HDR is the whole distribution in nanoseconds, in HdrHistogram's V2 compressed base64 form. Empty in intervals.
	HDR string `json:"hdr,omitempty"`
}

// Histogram decodes HDR.
func (l Latency) Histogram() (*hdrhistogram.Histogram, error) {
	if l.HDR == "" {
		return nil, errors.New("bench: this latency has no histogram: take a variant's or a kind's")
	}
	h, err := hdrhistogram.Decode([]byte(l.HDR))
	if err != nil {
		return nil, fmt.Errorf("bench: the histogram does not decode, was the report edited? %w", err)
	}
	return h, nil
}

// Generator is how well the open loop kept its schedule.
type Generator struct {
	// Intended is how many measured operations became due. Unfinished is how many of them neither succeeded nor
	// failed: they were still waiting or in progress when the drain time was over or the run was interrupted.
	Intended   int64 `json:"intended"`
	Unfinished int64 `json:"unfinished"`

	// MaxBacklog is the most operations that waited for a worker at a time, warm-up included.
	MaxBacklog int64 `json:"max_backlog"`

	// Lateness is by how much the generator missed intended starts. It is part of response times. So is the time that
	// a waiting worker takes to wake up, which is not in here: service time leaves out both.
	Lateness Latency `json:"lateness"`

	// RealTime says that the generator and its workers ran in a process that the operating system lets run before all
	// ordinary ones, as Process.Run asks for.
	RealTime bool `json:"real_time,omitempty"`
}

// Judge returns a mark if the lateness is too much beside the response times that hold it: more than the limit, and more
// than a tenth of their 99th percentile.
func (g *Generator) Judge(response Latency, limit time.Duration) *Mark {
	if limit = max(limit, response.P99/10); g.Lateness.P99 <= limit && g.Lateness.OutOfRange == 0 {
		return nil
	}
	return &Mark{Invalid, fmt.Sprintf("the generator itself was late: p99 %s, where %s is allowed, so latencies are not the server's alone: lower the rate or free the machine",
		shortDuration(g.Lateness.P99), shortDuration(limit))}
}

// Interval is what one kind of one variant did in one stretch of time, by the end of each operation.
type Interval struct {
	Variant  string    `json:"variant"`
	Kind     string    `json:"kind"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Response Latency   `json:"response"`

	h *histogram
}

// Histogram returns the interval's distribution in nanoseconds. Intervals read from JSON have none.
func (i Interval) Histogram() (*hdrhistogram.Histogram, error) {
	if i.h == nil {
		return nil, errors.New("bench: this interval has no histogram, as it was read from a report: read the interval log")
	}
	full := i.h.dense()
	if packed, ok := i.h.h.(*hdrhistogram.PackedHistogram); ok {
		packed.MergeInto(full)
	}
	return full, nil
}

// MarkKind is a reason to distrust a result.
type MarkKind string

const (
	// Invalid: the figures do not mean what they say.
	Invalid MarkKind = "invalid"

	// Partial: something is missing, the rest stands.
	Partial MarkKind = "partial"
)

// Mark is a warning that belongs to a result.
type Mark struct {
	Kind   MarkKind `json:"kind"`
	Reason string   `json:"reason"`
}

// String words the mark: "PARTIAL: interrupted after 3s".
func (m Mark) String() string { return strings.ToUpper(string(m.Kind)) + ": " + oneLine(m.Reason) }

// Is reports whether the result has a mark of that kind.
func (r *Result) Is(kind MarkKind) bool {
	for _, m := range r.Marks {
		if m.Kind == kind {
			return true
		}
	}
	return false
}

// Variant returns the named variant's part, or nil.
func (r *Result) Variant(name string) *VariantResult {
	for i := range r.Variants {
		if r.Variants[i].Name == name {
			return &r.Variants[i]
		}
	}
	return nil
}

// Comparison returns the named variant's ratio for a metric, or nil.
func (r *Result) Comparison(variant, metric string) *Comparison {
	for i := range r.Comparisons {
		if c := &r.Comparisons[i]; c.Variant == variant && c.Metric == metric {
			return c
		}
	}
	return nil
}
