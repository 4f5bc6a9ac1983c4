package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
)

// CounterSource tells running totals, such as the commands that the servers have processed since they started.
type CounterSource interface {
	// Counters returns the totals by name. Totals never go down, and the source's own doings are not in them. It is
	// called between slices, never concurrently, and returns when ctx ends.
	Counters(ctx context.Context) (map[string]float64, error)
}

// Names of the counters that every run has: heap objects and bytes that this process allocated per operation.
const (
	AllocsPerOp = "allocs"
	BytesPerOp  = "alloc_bytes"
)

// count finds out what one operation costs. Each variant in turn does a slice of operations, one at a time; the median
// of several slices leaves out what happened in the background during one of them. This is a pass of its own, as reading
// the counters exactly stops the world and asks the servers: no latency is measured meanwhile.
func (r *run) count(ctx context.Context) {
	samples := make([]map[string][]float64, len(r.subjects))
	failed := false
	for range countSlices {
		for v := range r.subjects {
			perOp, err := r.countSlice(ctx, v)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				if !failed {
					r.mark(Partial, "counters of variant %q: %v", r.subjects[v].name, err)
				}
				failed = true
				continue
			}
			if samples[v] == nil {
				samples[v] = map[string][]float64{}
			}
			for name, n := range perOp {
				samples[v][name] = append(samples[v][name], n)
			}
		}
	}
	r.counters = make([]map[string]float64, len(r.subjects))
	for v, byName := range samples {
		r.counters[v] = map[string]float64{}
		for name, n := range byName {
			r.counters[v][name] = median(n)
		}
	}
}

func (r *run) countSlice(ctx context.Context, v int) (map[string]float64, error) {
	r.setVariant(v)
	s := r.subjects[v]
	sources := []CounterSource{r.o.Counters, s.Counters}
	before, err := sampleAll(ctx, sources, s.Batch != nil)
	if err != nil {
		return nil, err
	}
	// Whole decks: every slice has the same mix of kinds, so counts are exact.
	deck := len(s.deck)
	decks := (r.o.CountOps + deck - 1) / deck
	until := r.now() + int64(countTime)

	perOp := map[string]float64{}
	ops := 0
	if s.Batch != nil {
		ops, err = countBatch(ctx, s, r.o.CountOps)
	} else {
		ops, err = countDecks(ctx, s, decks, func() bool { return r.now() < until }, perOp)
	}
	if err != nil {
		return nil, fmt.Errorf("an operation failed: %w", err)
	}
	after, err := sampleAll(ctx, sources, s.Batch != nil)
	if err != nil {
		return nil, err
	}
	for name, n := range after {
		b, ok := before[name]
		if !ok {
			continue
		}
		if n < b {
			return nil, fmt.Errorf("counter %q went down from %g to %g: was a server restarted or its statistics reset?", name, b, n)
		}
		perOp[name] = (n - b) / float64(ops)
	}
	return perOp, nil
}

// countDecks does operations and adds what they allocated, each, to perOp.
func countDecks(ctx context.Context, s *subject, decks int, more func() bool, perOp map[string]float64) (ops int, err error) {
	var m0, m1 runtime.MemStats
	runtime.ReadMemStats(&m0)
	for d := 0; d < decks && (d == 0 || more()) && err == nil; d++ {
		for _, kind := range s.deck {
			if err = s.ops[0][kind](ctx); err != nil {
				break
			}
			ops++
		}
	}
	runtime.ReadMemStats(&m1)
	perOp[AllocsPerOp] = float64(m1.Mallocs-m0.Mallocs) / float64(ops)
	perOp[BytesPerOp] = float64(m1.TotalAlloc-m0.TotalAlloc) / float64(ops)
	return ops, err
}

func countBatch(ctx context.Context, s *subject, ops int) (int, error) {
	b, err := s.Batch(ctx, ops)
	switch {
	case err != nil:
		return 0, err
	case len(b.Errs) > 0:
		return 0, b.Errs[0]
	}
	return len(b.Took), nil
}

// sampleAll reads all sources. Allocations are this process's own, unless it is another one that works.
func sampleAll(ctx context.Context, sources []CounterSource, elsewhere bool) (map[string]float64, error) {
	all := map[string]float64{}
	for _, src := range sources {
		if src == nil {
			continue
		}
		m, err := src.Counters(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if _, taken := all[name]; taken || !elsewhere && (name == AllocsPerOp || name == BytesPerOp) {
				return nil, errors.New("two sources have a counter named " + name + ": rename one")
			}
			all[name] = m[name]
		}
	}
	return all, nil
}
