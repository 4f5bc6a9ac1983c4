package scenarios

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/slotmap"
)

// Gate compares two builds by one part: see Gate of package bench. The commands start a program that calls Serve for the
// same part on the same servers; each is called several times. The target is looked at for counters alone.
//
// Sets have replicas in one slot of 64: a write then takes few steps, whose number does not depend on the machine, and
// many writes fit into a batch.
func Gate(ctx context.Context, p Part, t *Target, o *Options, old, new func() *exec.Cmd) (*bench.Decision, []*bench.Result, error) {
	if !p.CanGate() {
		return nil, nil, fmt.Errorf("bench: %s cannot compare builds: choose a part whose variants are single operations", p.Name)
	}
	if o == nil {
		o = &Options{}
	}
	if err := o.Check([]Part{p}); err != nil {
		return nil, nil, err
	}
	st, err := newStage(ctx, []Part{p}, t, o)
	if err != nil {
		return nil, nil, err
	}
	defer st.close()
	st.part, st.progress = p, newClock([]Part{p}, o.Progress).part(0)
	s, opts := st.batch(old, new)
	return bench.Gate(ctx, s, opts)
}

// batch is what one batch of the gate measures, and how.
func (s *stage) batch(old, new func() *exec.Cmd) (bench.Scenario, *bench.Options) {
	p := s.part
	opts := &bench.Options{
		Load: bench.Load{Duration: s.opts.load(4*time.Second, 30*time.Second).Duration}, Rounds: s.opts.Rounds,
		SliceOps: p.slice, Seed: s.opts.Seed, Progress: s.progress, Counters: s.counters(),
	}
	if p.count > 0 {
		// Steps adapt to the servers' pace, so that one write differs from the next a little.
		opts.CountOps = max(p.count, 40)
	}
	return bench.Scenario{Name: p.Name, Doc: p.Doc, Variants: []bench.Variant{
		bench.Remote("old", p.Name, p.Doc, old), bench.Remote("new", p.Name, p.Doc, new),
	}}, opts
}

// Serve does the operations of one part as another process asks for them, until in ends: for Gate those of the variant
// "shardkit", or of the first one; for Run, which starts Target.Worker, the reads of reader-p99.
func Serve(ctx context.Context, p Part, t *Target, in io.Reader, out io.Writer) error {
	return serve(ctx, p, t, func(ctx context.Context, s bench.Scenario) error { return bench.Serve(ctx, s, in, out) })
}

func serve(ctx context.Context, p Part, t *Target, do func(context.Context, bench.Scenario) error) error {
	if p.metric == "" || p.faults {
		return fmt.Errorf("bench: %s cannot be served", p.Name)
	}
	if t != nil && t.some == nil {
		few := *t
		for slot := uint16(0); slot < slotmap.Slots; slot += 64 {
			few.some = append(few.some, slot)
		}
		t = &few
	}
	st, err := newStage(ctx, []Part{p}, t, &Options{Seed: 1})
	if err != nil {
		return err
	}
	defer st.close()
	st.part, st.serve = p, do
	_, err = p.run(ctx, st)
	return err
}

// served is the part with the variant alone that a gate is about.
func served(p Part, variants []bench.Variant) bench.Scenario {
	i := max(slices.IndexFunc(variants, func(v bench.Variant) bool { return v.Name == ours }), 0)
	return bench.Scenario{Name: p.Name, Doc: p.Doc, Variants: variants[i : i+1]}
}
