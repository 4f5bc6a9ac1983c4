package scenarios

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/bench"
)

// Run runs the parts one after the other. The target may be nil if none of them needs a cluster.
//
// The first failure ends the run; the results so far come with the error. When ctx ends, the result of the part that was
// cut short is marked partial, and so is an empty one for each part after it.
func Run(ctx context.Context, parts []Part, t *Target, o *Options) ([]*bench.Result, error) {
	if o == nil {
		o = &Options{}
	}
	if err := o.Check(parts); err != nil {
		return nil, err
	}
	opts := *o
	if opts.Seed == 0 {
		// As in bench: readers of JSON that keep numbers as doubles must be able to copy it.
		opts.Seed = rand.Uint64N(1<<53-1) + 1
	}
	st, err := newStage(ctx, parts, t, &opts)
	if err != nil {
		return nil, err
	}
	defer st.close()
	clock := newClock(parts, opts.Progress)
	var results []*bench.Result
	for i, p := range parts {
		st.part, st.progress = p, clock.part(i)
		var res *bench.Result
		err := fmt.Errorf("%w: %w", bench.ErrInterrupted, context.Cause(ctx))
		if ctx.Err() == nil {
			res, err = p.run(ctx, st)
		}
		if res != nil {
			results = append(results, res)
		}
		if err == nil {
			continue
		}
		if ctx.Err() == nil {
			return results, fmt.Errorf("%s: %w", p.Name, err)
		}
		if !errors.Is(err, bench.ErrInterrupted) {
			err = fmt.Errorf("%w: %w", bench.ErrInterrupted, err)
		}
		if res != nil {
			i++
		}
		return append(results, unreached(parts[i:])...), err
	}
	return results, nil
}

// unreached stands for parts that an interruption left out, so that a reader of the report misses nothing.
func unreached(parts []Part) []*bench.Result {
	var out []*bench.Result
	for _, p := range parts {
		out = append(out, &bench.Result{
			Scenario: p.Name, Doc: p.Doc, Variants: []bench.VariantResult{}, Intervals: []bench.Interval{},
			Marks: []bench.Mark{{Kind: bench.Partial, Reason: "not measured: the run was interrupted before"}},
		})
	}
	return out
}

// stage is what the parts run on.
type stage struct {
	opts     *Options
	part     Part
	progress func(bench.Progress)

	target    *Target
	info      *bench.RedisInfo // of the cluster
	shardInfo *bench.RedisInfo
	backend   *goredis.Backend
	prefix    string

	serve func(context.Context, bench.Scenario) error // instead of measuring; see Serve
}

func newStage(ctx context.Context, parts []Part, t *Target, o *Options) (*stage, error) {
	st := &stage{opts: o}
	if NeedCluster(parts) {
		if t == nil || t.Client == nil {
			return nil, errors.New("bench: a scenario needs a cluster: give it a Target with a Client")
		}
		info, err := counters(ctx, t.Client)
		if err != nil {
			return nil, err
		}
		st.info, st.backend = info, goredis.New(t.Client)
	}
	if NeedShards(parts) {
		if t == nil || len(t.Shards) == 0 {
			return nil, errors.New("bench: a scenario needs independent servers: give it a Target with Shards")
		}
		st.shardInfo = infoOf(t.Shards)
	}
	if t != nil {
		st.target, st.prefix = t, t.prefix()
	}
	return st, nil
}

func (s *stage) close() {
	for _, info := range []*bench.RedisInfo{s.info, s.shardInfo} {
		if info != nil {
			_ = info.Close()
		}
	}
}

// counters are those of the servers that the part runs on, or nil.
func (s *stage) counters() bench.CounterSource {
	switch {
	case s.part.cluster:
		return s.info
	case s.part.shards:
		return s.shardInfo
	}
	return nil
}

// bench runs the part's variants with what all parts have in common.
func (s *stage) bench(ctx context.Context, o bench.Options, variants ...bench.Variant) (*bench.Result, error) {
	if s.serve != nil {
		return &bench.Result{}, s.serve(ctx, served(s.part, variants))
	}
	o.Seed, o.Progress = s.opts.Seed, s.progress
	o.SliceOps, o.CountOps = s.part.slice, s.part.count
	o.Counters = s.counters()
	if s.opts.Rounds != 0 {
		o.Rounds = s.opts.Rounds
	}
	return bench.Run(ctx, bench.Scenario{Name: s.part.Name, Doc: s.part.Doc, Variants: variants}, &o)
}

// write is bench for writers, which are verified in the end.
func (s *stage) write(ctx context.Context, o bench.Options, writers []writer) (*bench.Result, error) {
	var variants []bench.Variant
	for _, w := range writers {
		variants = append(variants, w.variant())
	}
	res, err := s.bench(ctx, o, variants...)
	if err != nil || slices.ContainsFunc(res.Variants, func(v bench.VariantResult) bool { return v.Errors > 0 }) {
		return res, err
	}
	if err = s.verify(ctx, writers); err != nil {
		res.Marks = append(res.Marks, bench.Mark{Kind: bench.Invalid, Reason: err.Error()})
	}
	return res, err
}

// clean runs f, which takes back what a part left on the servers, also after an interruption, and adds its error to *err.
func (s *stage) clean(ctx context.Context, err *error, f func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	*err = errors.Join(*err, f(ctx))
}
