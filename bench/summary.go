package bench

import "time"

// result turns what the run collected into its result. ended is in nanoseconds since started.
func (r *run) result(started time.Time, ended int64) *Result {
	st := r.store
	st.mu.Lock()
	defer st.mu.Unlock()
	o := r.o
	open := o.Load.Mode == Open
	// Wall-clock times come from one reading of the clock: a step of it during the run moves nothing.
	at := func(offset int64) time.Time { return started.Round(0).UTC().Add(time.Duration(offset)) }
	origin := min(st.origin, ended)
	res := &Result{
		Scenario: r.scenario.Name, Doc: r.scenario.Doc,
		Started: at(0), Measured: at(origin), Ended: at(ended),
		Settings: Settings{
			Load: o.Load, Interval: o.Interval, MaxLatency: o.MaxLatency, Seed: o.Seed,
			Rounds: len(st.rounds), SliceOps: o.SliceOps, Confidence: o.Confidence, Threshold: o.Threshold,
		},
		Generator: r.generator,
		Intervals: []Interval{},
	}

	names := make([]string, len(r.subjects))
	for v, s := range r.subjects {
		names[v] = s.name
		vr := VariantResult{Name: s.name, Twin: s.twin, Errors: r.failures[v].total(), Failures: r.failures[v].list()}
		whole := newTiming(o.MaxLatency)
		for k, t := range st.totals[v] {
			whole.merge(t)
			kr := KindResult{Name: s.Kinds[k].Name}
			kr.Response, kr.Service = summarise(t, open)
			vr.Kinds = append(vr.Kinds, kr)
		}
		vr.Response, vr.Service = summarise(whole, open)
		busy := r.busy[v]
		if open {
			busy = time.Duration(max(st.last, ended) - origin)
		}
		if busy > 0 {
			vr.Rate = float64(whole.response.n()) / busy.Seconds()
		}
		if v < len(r.counters) {
			vr.Counters = r.counters[v]
		}
		res.Variants = append(res.Variants, vr)
	}
	res.Comparisons = compare(names, st.rounds, o)
	r.intervals(res, at, ended)
	if res.Generator != nil {
		finished := int64(0)
		for _, v := range res.Variants {
			finished += v.Response.Count + v.Response.OutOfRange + v.Errors
		}
		res.Generator.Unfinished = max(res.Generator.Intended-finished, 0)
	}
	r.judge(res)
	res.Marks = r.marks
	return res
}

func summarise(t timing, open bool) (response Latency, service *Latency) {
	response = t.response.latency()
	response.HDR = t.response.encode()
	if open {
		l := t.service.latency()
		l.HDR = t.service.encode()
		service = &l
	}
	return response, service
}

func (r *run) intervals(res *Result, at func(int64) time.Time, ended int64) {
	st := r.store
	if st.last == 0 {
		return
	}
	n := st.intervalOf(st.last) + 1
	for i := range n {
		start := st.origin + int64(i)*st.interval
		end := min(start+st.interval, max(ended, st.last))
		for v, byKind := range st.intervals {
			for k, s := range byKind {
				h := s.all(n)[i]
				res.Intervals = append(res.Intervals, Interval{
					Variant: r.subjects[v].name, Kind: r.subjects[v].Kinds[k].Name,
					Start: at(start), End: at(end), Response: h.latency(), h: h,
				})
			}
		}
	}
}

// judge marks what makes the figures say something else than what they seem to.
func (r *run) judge(res *Result) {
	for _, v := range res.Variants {
		done := v.Response.Count + v.Response.OutOfRange
		switch all := done + v.Errors; {
		case done == 0 && v.Errors > 0:
			r.mark(Invalid, "every operation of variant %q failed (%d): %s", v.Name, v.Errors, v.Failures[0].Texts[0])
		case done == 0 && !r.interrupted:
			r.mark(Invalid, "variant %q did no operation: run longer", v.Name)
		case float64(v.Errors) > r.o.MaxErrorShare*float64(all):
			r.mark(Invalid, "%d of %d operations of variant %q failed (%.2g %%) and are in no percentile: %s",
				v.Errors, all, v.Name, 100*float64(v.Errors)/float64(all), v.Failures[0].Texts[0])
		}
		if n := v.Response.OutOfRange; n > 0 {
			r.mark(Invalid, "%d operations of variant %q took longer than %v, the longest %v, and are in no percentile: raise Options.MaxLatency",
				n, v.Name, r.o.MaxLatency, v.Response.Max)
		}
	}
	g := res.Generator
	if g == nil {
		return
	}
	if g.Unfinished > 0 && !r.interrupted {
		r.mark(Invalid, "%d of %d operations were not finished %v after the schedule's end, and are in no percentile: lower the rate",
			g.Unfinished, g.Intended, r.o.Load.Drain)
	}
	var slowest Latency
	for _, v := range res.Variants {
		if v.Response.P99 > slowest.P99 {
			slowest = v.Response
		}
	}
	if m := g.Judge(slowest, r.o.LatenessLimit); m != nil {
		r.marks = append(r.marks, *m)
	}
}
