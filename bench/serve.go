package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"time"
)

// The protocol between Serve and Remote is JSON, a line each way. Requests come one at a time, when the hello is there;
// the end of the input ends it, and what is under way.
//
//	<- {"protocol":1,"scenario":"get","doc":"one key, 64 bytes","variant":"plain"}
//	-> {"do":"batch","ops":40}
//	<- {"took_ns":[26000,...],"errors":["read: i/o timeout"]}
//	-> {"do":"counters"}
//	<- {"counters":{"allocs":1234,"alloc_bytes":56789}}
//	-> {"do":"run","run":{"load":{"mode":"open","rate":500,...},...}}
//	<- {"result":{...},"intervals":["HISTF...",...]}
type hello struct {
	Protocol int    `json:"protocol"`
	Scenario string `json:"scenario"`
	Doc      string `json:"doc"`
	Variant  string `json:"variant"`
}

type request struct {
	Do  string      `json:"do"`
	Ops int         `json:"ops,omitempty"`
	Run *runRequest `json:"run,omitempty"`
}

// runRequest is the part of Options that reaches another process.
type runRequest struct {
	Load          Load          `json:"load"`
	Interval      time.Duration `json:"interval_ns"`
	MaxLatency    time.Duration `json:"max_latency_ns"`
	Seed          uint64        `json:"seed"`
	LatenessLimit time.Duration `json:"lateness_limit_ns"`
	MaxErrorShare float64       `json:"max_error_share"`
}

type reply struct {
	Took     []time.Duration    `json:"took_ns,omitempty"`
	Errors   []string           `json:"errors,omitempty"`
	Counters map[string]float64 `json:"counters,omitempty"`

	Result    *Result  `json:"result,omitempty"`
	Intervals []string `json:"intervals,omitempty"` // the histogram of each of the result's

	Fatal string `json:"fatal,omitempty"`
}

const protocol = 1

// Serve sets up the scenario's first variant and does its operations as another process asks for them, by way of Remote or
// StartProcess, until in ends. One operation is under way at a time, but in the runs of Process.Run.
func Serve(ctx context.Context, s Scenario, in io.Reader, out io.Writer) (err error) {
	if err := s.Validate(); err != nil {
		return err
	}
	sub, err := setUp(ctx, s.Variants[0], 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sub.tearDown(ctx)) }()
	if sub.Batch != nil {
		return fmt.Errorf("bench: variant %q does batches: serve what it stands for", sub.name)
	}
	// What setting up left behind must not be collected while measuring.
	runtime.GC()
	w := json.NewEncoder(out)
	if err := w.Encode(hello{protocol, s.Name, s.Doc, sub.name}); err != nil {
		return fmt.Errorf("bench: serve %s: %w", s.Name, err)
	}
	ctx, hangUp := context.WithCancelCause(ctx)
	defer hangUp(nil)
	requests := make(chan request)
	go func() {
		for r := json.NewDecoder(bufio.NewReader(in)); ; {
			var req request
			if err := r.Decode(&req); err != nil {
				hangUp(err)
				return
			}
			select {
			case requests <- req:
			case <-ctx.Done():
				return
			}
		}
	}()
	v := server{scenario: s, sub: sub, totals: map[string]float64{AllocsPerOp: 0, BytesPerOp: 0}}
	for ctx.Err() == nil {
		select {
		case req := <-requests:
			answer := v.answer(ctx, req)
			if ctx.Err() != nil { // nobody waits for it
				continue
			}
			if err := w.Encode(answer); err != nil {
				return fmt.Errorf("bench: serve %s: %w", s.Name, err)
			}
		case <-ctx.Done():
		}
	}
	if cause := context.Cause(ctx); !errors.Is(cause, io.EOF) {
		return fmt.Errorf("bench: serve %s: %w", s.Name, cause)
	}
	return nil
}

type server struct {
	scenario Scenario
	sub      *subject
	n        int // operations, to go round the deck
	counting bool
	totals   map[string]float64
}

func (v *server) answer(ctx context.Context, req request) reply {
	switch req.Do {
	case "batch":
		return v.batch(ctx, req.Ops)
	case "counters":
		v.counting = true
		all := maps.Clone(v.totals)
		if src := v.sub.Counters; src != nil {
			more, err := src.Counters(ctx)
			if err != nil {
				return reply{Fatal: err.Error()}
			}
			maps.Copy(all, more)
		}
		return reply{Counters: all}
	case "run":
		return v.run(ctx, req.Run)
	}
	return reply{Fatal: fmt.Sprintf("there is no request %q", req.Do)}
}

func (v *server) batch(ctx context.Context, ops int) reply {
	r := reply{Took: make([]time.Duration, 0, ops)}
	var m0, m1 runtime.MemStats
	if v.counting { // stops the world, which latencies would feel
		runtime.ReadMemStats(&m0)
	}
	for range ops {
		op := v.sub.ops[0][v.sub.deck[v.n%len(v.sub.deck)]]
		v.n++
		start := time.Now()
		err := op(ctx)
		took := time.Since(start)
		if err != nil {
			r.Errors = append(r.Errors, err.Error())
			continue
		}
		r.Took = append(r.Took, took)
	}
	if v.counting {
		runtime.ReadMemStats(&m1)
		v.totals[AllocsPerOp] += float64(m1.Mallocs - m0.Mallocs)
		v.totals[BytesPerOp] += float64(m1.TotalAlloc - m0.TotalAlloc)
	}
	return r
}

func (v *server) run(ctx context.Context, req *runRequest) reply {
	if req == nil || req.Load.Mode != Open {
		return reply{Fatal: "a run needs the load of an open loop"}
	}
	realTime := runRealTime()
	req.Load.SkipWarmUp = req.Load.WarmUp == 0
	s := v.scenario
	s.Variants = []Variant{{Name: v.sub.name, Setup: func(context.Context, int) (*Subject, error) {
		return &Subject{Kinds: v.sub.Kinds}, nil // set up already
	}}}
	res, err := Run(ctx, s, &Options{
		Load: req.Load, Interval: req.Interval, MaxLatency: req.MaxLatency, Seed: req.Seed,
		LatenessLimit: req.LatenessLimit, MaxErrorShare: req.MaxErrorShare, SkipCounters: true,
	})
	if err != nil {
		return reply{Fatal: err.Error()}
	}
	res.Generator.RealTime = realTime
	r := reply{Result: res}
	for _, i := range res.Intervals {
		r.Intervals = append(r.Intervals, i.h.encode())
	}
	return r
}
