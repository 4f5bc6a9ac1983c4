package bench

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/shardkit/shardkit/bench/internal/program"
)

// Remote is a variant whose operations are done and timed by another process, which calls Serve. Each Setup starts one
// from the command, with its standard input and output. It must serve that scenario, under the same Doc: else what is
// compared is not the same.
func Remote(name, scenario, doc string, command func() *exec.Cmd) Variant {
	return Variant{Name: name, Setup: func(ctx context.Context, _ int) (*Subject, error) {
		p, err := StartProcess(ctx, scenario, doc, command())
		if err != nil {
			return nil, err
		}
		return &Subject{Batch: p.batch, Counters: p, TearDown: p.Close}, nil
	}}
}

// Process is another process, which calls Serve. It does one thing at a time.
type Process struct {
	program  *program.Program
	path     string
	patience time.Duration // for a result, once it is due
}

// StartProcess starts the command, and waits until it serves that scenario under that Doc. The caller must Close it.
func StartProcess(ctx context.Context, scenario, doc string, cmd *exec.Cmd) (*Process, error) {
	started, err := program.Start(cmd)
	if err != nil {
		return nil, err
	}
	p := &Process{program: started, path: cmd.Path, patience: tearDownTime}
	var h hello
	if err = started.Next(ctx, &h); err == nil && (h.Protocol != protocol || h.Scenario != scenario || h.Doc != doc) {
		err = fmt.Errorf("%s measures %q (%s; protocol %d), not %q (%s; protocol %d)",
			cmd.Path, h.Scenario, h.Doc, h.Protocol, scenario, doc, protocol)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tearDownTime)
		defer cancel()
		return nil, errors.Join(err, p.Close(ctx))
	}
	return p, nil
}

// Run has the process put its variant under an open loop, and returns what that one saw. What this process does meanwhile
// is then not between the generator and its operations. On Linux the other one runs before all ordinary processes from
// then on, where it may (root may): else it waits for its turn on processors that servers keep busy, for milliseconds,
// which no server is to blame for. Generator.RealTime tells.
//
// Of the options it takes Load, Interval, MaxLatency, Seed, LatenessLimit and MaxErrorShare; nothing is counted.
//
// A process that does not answer in time is no longer of use, and neither is one whose run ctx has ended: Close it.
func (p *Process) Run(ctx context.Context, o *Options) (*Result, error) {
	opts, err := o.resolve(1)
	if err != nil {
		return nil, err
	}
	if opts.Load.Mode != Open {
		return nil, invalid("Load.Mode", opts.Load.Mode, "another process runs open loops alone, set bench.Open")
	}
	n, every := opts.Load.intents()
	length := opts.Load.WarmUp + time.Duration(float64(n)*every) + opts.Load.Drain
	ctx, cancel := context.WithTimeoutCause(ctx, length+p.patience, fmt.Errorf("%s does not answer: a run of %v is not over after %v", p.path, length, length+p.patience))
	defer cancel()
	r, err := p.ask(ctx, request{Do: "run", Run: &runRequest{
		opts.Load, opts.Interval, opts.MaxLatency, opts.Seed, opts.LatenessLimit, opts.MaxErrorShare,
	}})
	if err != nil {
		return nil, err
	}
	if r.Result == nil || len(r.Intervals) != len(r.Result.Intervals) {
		return nil, fmt.Errorf("%s answers without the result of its run", p.path)
	}
	for i, text := range r.Intervals {
		h, err := hdrhistogram.Decode([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%s answers with a histogram that does not decode: %w", p.path, err)
		}
		r.Result.Intervals[i].h = (&histogram{limit: int64(opts.MaxLatency), h: h}).pack()
	}
	return r.Result, nil
}

func (p *Process) ask(ctx context.Context, req request) (r reply, err error) {
	if err = p.program.Ask(ctx, req, &r); err == nil && r.Fatal != "" {
		err = errors.New(r.Fatal)
	}
	return r, err
}

func (p *Process) batch(ctx context.Context, ops int) (*Batch, error) {
	r, err := p.ask(ctx, request{Do: "batch", Ops: ops})
	if err != nil {
		return nil, err
	}
	b := &Batch{Took: r.Took}
	for _, text := range r.Errors {
		b.Errs = append(b.Errs, errors.New(text))
	}
	return b, nil
}

// Counters are the process's own.
func (p *Process) Counters(ctx context.Context) (map[string]float64, error) {
	r, err := p.ask(ctx, request{Do: "counters"})
	return r.Counters, err
}

// Close ends the process's input, upon which it stops what it does, cleans up and ends. One that does not is killed when
// ctx ends.
func (p *Process) Close(ctx context.Context) error { return p.program.Close(ctx) }
