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
// the end of the input ends it.
//
//	<- {"protocol":1,"scenario":"get","doc":"one key, 64 bytes","variant":"plain"}
//	-> {"do":"batch","ops":40}
//	<- {"took_ns":[26000,...],"errors":["read: i/o timeout"]}
//	-> {"do":"counters"}
//	<- {"counters":{"allocs":1234,"alloc_bytes":56789}}
type hello struct {
	Protocol int    `json:"protocol"`
	Scenario string `json:"scenario"`
	Doc      string `json:"doc"`
	Variant  string `json:"variant"`
}

type request struct {
	Do  string `json:"do"`
	Ops int    `json:"ops,omitempty"`
}

type reply struct {
	Took     []time.Duration    `json:"took_ns,omitempty"`
	Errors   []string           `json:"errors,omitempty"`
	Counters map[string]float64 `json:"counters,omitempty"`
	Fatal    string             `json:"fatal,omitempty"`
}

const protocol = 1

// Serve sets up the scenario's first variant and does its operations as a Remote variant in another process asks for them,
// until in ends. One operation is under way at a time.
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
	v := server{sub: sub, totals: map[string]float64{AllocsPerOp: 0, BytesPerOp: 0}}
	for r := json.NewDecoder(bufio.NewReader(in)); ; {
		var req request
		if err := r.Decode(&req); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("bench: serve %s: %w", s.Name, err)
		}
		if err := w.Encode(v.answer(ctx, req)); err != nil {
			return fmt.Errorf("bench: serve %s: %w", s.Name, err)
		}
	}
}

type server struct {
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
