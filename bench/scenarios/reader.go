package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

func readerParts() []Part {
	return []Part{
		{
			Name: "reader-p99-one-master", metric: "response_p99", takes: 30 * time.Second,
			Doc: "GET from one master at a fixed rate, latency from the intended start, while 200 strings of 13 bytes are published in a loop to its slots alone",
			run: func(ctx context.Context, s *stage) (*bench.Result, error) { return reader(ctx, s, true) },
		},
		{
			Name: "reader-p99-all-masters", metric: "response_p99", takes: 30 * time.Second,
			Doc: "GET from all masters at a fixed rate, latency from the intended start, while 200 strings of 13 bytes are published in a loop to all slots",
			run: func(ctx context.Context, s *stage) (*bench.Result, error) { return reader(ctx, s, false) },
		},
	}
}

// PublishTime is a counter of reader-p99: how long a publish took meanwhile, on average, in milliseconds. A publish that
// takes longer is easier on the reader, so neither figure means much alone.
const PublishTime = "publish_ms"

const (
	readerRate = 1000 // a second: enough for a p99, and little beside what publishing does
	readerKeys = 64
	readerLife = time.Hour // of its keys, should the process that removes them be killed

	// shortStep is the StepTime of a user who cares for readers first.
	shortStep = 250 * time.Microsecond

	// readerLate is far less than any response time beside a publish.
	readerLate = 100 * time.Microsecond
)

// reader lets a reader run in stretches, in each of which one variant publishes all the time; or none, which is idle.
//
// It is not a scenario of package bench, whose variants are operations that take turns every few milliseconds: here what
// is measured is the same in all variants, and what differs goes on beside it. So each stretch is a run of its own, in
// open loop, and a round holds one stretch of each variant in an order drawn anew.
//
// The reader has a process of its own, which runs before the others where it may. In this one it would wait for the
// publishers' goroutines and collections, and more for the classic way, which keeps a processor busy with its pipelines:
// the difference would be the client's, not the servers'.
//
// Servers that share processors wait for each other, too. With one busy server only, a machine of two processors has one
// for it, as a server should have: that is what a publish does to the clients of a server.
func reader(ctx context.Context, s *stage, oneMaster bool) (res *bench.Result, err error) {
	if s.target.Worker == nil && s.serve == nil {
		return nil, errors.New("bench: reader-p99 reads in a process of its own: give the Target a Worker")
	}
	if oneMaster {
		if s, err = s.onFirstMaster(ctx); err != nil {
			return nil, err
		}
	}
	if s.serve != nil {
		return &bench.Result{}, s.serve(ctx, bench.Scenario{Name: s.part.Name, Doc: s.part.Doc, Variants: []bench.Variant{s.reading()}})
	}
	c := content{size: 200}
	r := &readers{stage: s, rng: rand.New(rand.NewPCG(s.opts.Seed, 2))}
	defer s.clean(ctx, &err, func(ctx context.Context) error { return s.target.removeReplicas(ctx, s.prefix) })
	s.progressOf(0, "")
	turn := newTurns(c)
	writers, err := s.publishers(ctx, s.prefix, c, turn)
	if err != nil {
		return nil, err
	}
	sets, of, err := s.others(s.prefix)
	if err != nil {
		return nil, err
	}
	names := []string{inShortSteps}
	for _, a := range of {
		names = append(names, a.of(ours))
	}
	short, err := replset.New(s.backend, s.prefix, &replset.Options{MaxBytes: 64 << 30, Slots: s.target.some, StepTime: shortStep})
	if err != nil {
		return nil, err
	}
	for i, set := range append([]*replset.Set{short}, sets...) {
		publish := func(ctx context.Context) error { return set.Publish(ctx, turn.members[turn.next()]) }
		writers = append(writers, writer{name: names[i], setUp: publish, write: publish, wrote: turn.wrote(s.prefix)})
	}
	for _, w := range writers {
		if err := w.setUp(ctx); err != nil {
			return nil, err
		}
	}
	if r.process, err = bench.StartProcess(ctx, s.part.Name, s.part.Doc, s.target.Worker(s.part)); err != nil {
		return nil, err
	}
	defer s.clean(ctx, &err, r.process.Close)
	// The baseline twice, as in every comparison: what differs there is noise.
	r.variants = append(slices.Clone(writers), writer{name: nobody}, writer{name: writers[0].name + "'", write: writers[0].write})
	if res, err = r.run(ctx); err == nil {
		err = s.verify(ctx, writers)
	}
	return res, err
}

// onFirstMaster is the stage narrowed to the slots of one master, the same in each process.
func (s *stage) onFirstMaster(ctx context.Context) (*stage, error) {
	nodes, err := masters(ctx, s.target.Client)
	if err != nil {
		return nil, err
	}
	one, target := *s, *s.target
	one.target, target.some = &target, nil
	for _, slot := range s.target.slots(s.prefix) {
		node, err := target.Client.MasterForKey(ctx, slotmap.KeyForSlot(s.prefix, slot))
		if err != nil {
			return nil, err
		}
		if node.Options().Addr == nodes[0].Options().Addr {
			target.some = append(target.some, slot)
		}
	}
	if len(target.some) == 0 {
		return nil, fmt.Errorf("bench: %s, the first master, owns none of the slots to write", nodes[0].Options().Addr)
	}
	// A Set has a replica in its home slot in any case.
	for i := 0; !slices.Contains(target.some, slotmap.Slot(one.prefix)); i++ {
		one.prefix = s.prefix + strconv.Itoa(i)
	}
	return &one, nil
}

type readers struct {
	*stage
	rng      *rand.Rand
	process  *bench.Process // reads
	variants []writer
	seen     []stretches // by variant
}

// stretches is what came of one variant's.
type stretches struct {
	results  []*bench.Result
	rounds   []bench.Latency
	writes   int
	writing  time.Duration
	failures []error
}

// reading is what the other process does.
func (s *stage) reading() bench.Variant {
	return bench.Variant{Name: "get", Setup: func(ctx context.Context, _ int) (*bench.Subject, error) {
		var keys []string
		slots := s.target.slots(s.prefix)
		for i := range readerKeys {
			keys = append(keys, slotmap.KeyForSlot(fmt.Sprintf("%s:read:%d", s.prefix, i), slots[i*len(slots)/readerKeys]))
		}
		each := func(ctx context.Context, do func(redis.Pipeliner, string)) error {
			_, err := s.target.Client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, key := range keys {
					do(pipe, key)
				}
				return nil
			})
			return err
		}
		remove := func(ctx context.Context) error {
			return each(ctx, func(pipe redis.Pipeliner, key string) { pipe.Unlink(ctx, key) })
		}
		err := each(ctx, func(pipe redis.Pipeliner, key string) {
			pipe.Set(ctx, key, "some value of thirty-two bytes..", readerLife)
		})
		if err != nil {
			return nil, errors.Join(err, remove(context.WithoutCancel(ctx)))
		}
		var n atomic.Uint64
		get := func(ctx context.Context) error { return s.target.Client.Get(ctx, keys[n.Add(1)%readerKeys]).Err() }
		op := func(int) (bench.Op, error) { return get, nil }
		return &bench.Subject{Kinds: []bench.Kind{{Name: "get", Worker: op}}, TearDown: remove}, nil
	}}
}

func (r *readers) run(ctx context.Context) (*bench.Result, error) {
	rounds := 5
	if r.opts.Long {
		rounds = 9
	}
	if r.opts.Rounds != 0 {
		rounds = r.opts.Rounds
	}
	whole := r.opts.load(18*time.Second, 100*time.Second).Duration
	each := whole / time.Duration(rounds*len(r.variants))
	r.seen = make([]stretches, len(r.variants))
	started := time.Now()
	for n := range rounds {
		for i, v := range r.rng.Perm(len(r.variants)) {
			r.progressOf(float64(n*len(r.variants)+i)/float64(rounds*len(r.variants)), r.variants[v].name)
			if err := r.stretch(ctx, v, each); err != nil {
				if ctx.Err() == nil {
					return nil, err
				}
				res := r.result(started, each)
				if res == nil {
					return nil, fmt.Errorf("%w: %w", bench.ErrInterrupted, context.Cause(ctx))
				}
				res.Marks = append(res.Marks, bench.Mark{Kind: bench.Partial, Reason: fmt.Sprintf("interrupted in round %d of %d", n+1, rounds)})
				return res, fmt.Errorf("%w: %w", bench.ErrInterrupted, context.Cause(ctx))
			}
		}
	}
	return r.result(started, each), nil
}

func (s *stage) progressOf(done float64, variant string) {
	if s.progress == nil {
		return
	}
	p := bench.Progress{Scenario: s.part.Name, Phase: bench.PhaseMeasure, Done: done, Variant: variant}
	if variant == "" {
		p.Phase = bench.PhaseSetUp
	}
	s.progress(p)
}

// stretch measures the reader for a while, beside variant v.
func (r *readers) stretch(ctx context.Context, v int, length time.Duration) error {
	stop, stopped := make(chan struct{}), make(chan struct{})
	seen := &r.seen[v]
	go func() {
		defer close(stopped)
		if r.variants[v].write == nil {
			return
		}
		for {
			select {
			case <-stop:
				return
			default:
			}
			start := time.Now()
			if err := r.variants[v].write(ctx); err != nil {
				if ctx.Err() == nil {
					seen.failures = append(seen.failures, err)
				}
				return
			}
			seen.writes++
			seen.writing += time.Since(start)
		}
	}()
	res, err := r.process.Run(ctx, &bench.Options{
		Load:          bench.Load{Mode: bench.Open, Rate: readerRate, Duration: length, WarmUp: min(length/5, 200*time.Millisecond), Drain: 2 * time.Second},
		LatenessLimit: length, // judged over all stretches
		Seed:          r.rng.Uint64N(1<<53-1) + 1,
	})
	close(stop)
	<-stopped
	if err != nil {
		return err
	}
	res.Variants[0].Name = r.variants[v].name
	for i := range res.Intervals {
		res.Intervals[i].Variant = r.variants[v].name
	}
	if len(seen.failures) > 0 {
		return errors.Join(seen.failures...)
	}
	seen.results = append(seen.results, res)
	seen.rounds = append(seen.rounds, res.Variants[0].Response)
	return nil
}

// result puts the stretches together, or is nil if a variant has none.
func (r *readers) result(started time.Time, each time.Duration) *bench.Result {
	rounds := len(r.seen[0].rounds)
	for _, s := range r.seen {
		rounds = min(rounds, len(s.rounds))
	}
	if rounds == 0 {
		return nil
	}
	first := r.seen[0].results[0]
	res := &bench.Result{
		Scenario: r.part.Name, Doc: r.part.Doc, Started: started, Measured: started, Ended: time.Now(),
		Settings: first.Settings, Intervals: []bench.Interval{}, Generator: &bench.Generator{RealTime: first.Generator.RealTime},
	}
	res.Settings.Seed, res.Settings.Rounds, res.Settings.Confidence = r.opts.Seed, rounds, rangeConfidence(rounds)
	res.Settings.Load.Duration = each * time.Duration(rounds*len(r.variants))
	for i, s := range r.seen {
		v := bench.VariantResult{
			Name: r.variants[i].name, Twin: i == len(r.seen)-1, Response: merged(latencies(s.results, response)),
			Counters: map[string]float64{},
		}
		service := merged(latencies(s.results, service))
		v.Service = &service
		v.Kinds = []bench.KindResult{{Name: "get", Response: v.Response, Service: v.Service}}
		v.Rate = float64(v.Response.Count) / (each.Seconds() * float64(len(s.results)))
		if s.writes > 0 {
			v.Counters[PublishTime] = s.writing.Seconds() * 1000 / float64(s.writes)
		}
		g := bench.Generator{Lateness: merged(lateness(s.results))}
		if g.Lateness.P99 >= res.Generator.Lateness.P99 {
			res.Generator.Lateness = g.Lateness
		}
		for _, one := range s.results {
			v.Errors += one.Variants[0].Errors
			v.Failures = append(v.Failures, one.Variants[0].Failures...)
			res.Intervals = append(res.Intervals, one.Intervals...)
			res.Generator.Intended += one.Generator.Intended
			res.Generator.Unfinished += one.Generator.Unfinished
			res.Generator.MaxBacklog = max(res.Generator.MaxBacklog, one.Generator.MaxBacklog)
		}
		res.Marks = append(res.Marks, marksOf(v.Name, s.results)...)
		if m := g.Judge(v.Response, readerLate); m != nil {
			res.Marks = append(res.Marks, bench.Mark{Kind: m.Kind, Reason: fmt.Sprintf("beside %s, %s", v.Name, m.Reason)})
		}
		res.Variants = append(res.Variants, v)
	}
	for _, metric := range []struct {
		name string
		of   func(bench.Latency) time.Duration
	}{
		{"response_p50", func(l bench.Latency) time.Duration { return l.P50 }},
		{"response_p99", func(l bench.Latency) time.Duration { return l.P99 }},
	} {
		res.Comparisons = append(res.Comparisons, compareRounds(res, r.seen, metric.name, metric.of)...)
	}
	return res
}

// marksOf repeats each sort of mark of a variant's stretches once, with how many of them had it.
func marksOf(variant string, results []*bench.Result) []bench.Mark {
	var out []bench.Mark
	for _, kind := range []bench.MarkKind{bench.Invalid, bench.Partial} {
		var reasons []string
		for _, r := range results {
			i := slices.IndexFunc(r.Marks, func(m bench.Mark) bool { return m.Kind == kind })
			if i >= 0 {
				reasons = append(reasons, r.Marks[i].Reason)
			}
		}
		if len(reasons) > 0 {
			out = append(out, bench.Mark{Kind: kind, Reason: fmt.Sprintf("%d of %d stretches beside %s: %s", len(reasons), len(results), variant, reasons[0])})
		}
	}
	return out
}

func response(v bench.VariantResult) bench.Latency { return v.Response }
func service(v bench.VariantResult) bench.Latency  { return *v.Service }

func latencies(results []*bench.Result, of func(bench.VariantResult) bench.Latency) []bench.Latency {
	var out []bench.Latency
	for _, r := range results {
		out = append(out, of(r.Variants[0]))
	}
	return out
}

func lateness(results []*bench.Result) []bench.Latency {
	var out []bench.Latency
	for _, r := range results {
		out = append(out, r.Generator.Lateness)
	}
	return out
}

// merged is all latencies as one.
func merged(all []bench.Latency) bench.Latency {
	var h *hdrhistogram.Histogram
	out := bench.Latency{Min: all[0].Min}
	var sum float64
	for _, l := range all {
		out.Count += l.Count
		out.OutOfRange += l.OutOfRange
		out.Min = min(out.Min, l.Min)
		out.Max = max(out.Max, l.Max)
		sum += l.Mean * float64(l.Count)
		one, err := l.Histogram()
		if err != nil {
			continue // bench encoded it a moment ago
		}
		if h == nil {
			h = one
		} else {
			h.Merge(one)
		}
	}
	if h == nil || out.Count == 0 {
		return out
	}
	out.Mean = sum / float64(out.Count)
	for percent, p := range map[float64]*time.Duration{50: &out.P50, 90: &out.P90, 99: &out.P99, 99.9: &out.P999} {
		// The histogram answers with the top of a bucket, which may lie above everything that was recorded.
		*p = min(time.Duration(h.ValueAtPercentile(percent)), out.Max)
	}
	if text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
		out.HDR = string(text)
	}
	return out
}
