package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var contextRules = []Rule{
	{
		"TS-017", "ended-context",
		"with a context that has ended, each method returns at once, with an error for which errors.Is(err, ctx.Err()) holds, and sends nothing",
		eachWay(func(p *probe, w way) error {
			key := p.key("ended" + w.name)
			cancelled, cancel := context.WithCancel(p.ctx)
			cancel()
			expired, cancel := context.WithDeadline(p.ctx, time.Unix(1, 0))
			defer cancel()
			for _, ctx := range []context.Context{cancelled, expired} {
				start := time.Now()
				v, err := w.call(ctx, p.Shard, []string{"INCR", key})
				if err == nil {
					return fmt.Errorf("got %s and no error", show(v))
				}
				if !errors.Is(err, ctx.Err()) {
					return fmt.Errorf("the error is %q, want one that wraps %q", err, ctx.Err())
				}
				if took := time.Since(start); took > promptly {
					return fmt.Errorf("it took %v", took)
				}
			}
			return p.steps(w, step{[]string{"GET", key}, nil})
		}),
	},
	{
		"TS-018", "deadline-is-kept",
		"when ctx's deadline passes during a call, the method returns promptly, with an error for which errors.Is(err, context.DeadlineExceeded) holds; later calls work",
		func(p *probe) error {
			key := p.key("prompt")
			if err := p.known("BLPOP", key, "0.001"); err != nil {
				return err
			}
			for _, w := range ways[:2] { // nothing blocks inside MULTI
				ctx, cancel := context.WithTimeout(p.ctx, 50*time.Millisecond)
				start := time.Now()
				v, err := w.call(ctx, p.Shard, []string{"BLPOP", key, blocked})
				took := time.Since(start)
				cancel()
				switch {
				case err == nil:
					return fmt.Errorf("%s: got %s and no error", w.name, show(v))
				case !errors.Is(err, context.DeadlineExceeded):
					return fmt.Errorf("%s: the error is %q, want one that wraps %q", w.name, err, context.DeadlineExceeded)
				case took > promptly:
					return fmt.Errorf("%s: returned %v after the call, 50ms were allowed", w.name, took)
				}
				for range 20 { // whatever connection they get
					if err := p.steps(w, step{[]string{"EXISTS", key}, int64(0)}); err != nil {
						return fmt.Errorf("after a call that passed its deadline: %w", err)
					}
				}
			}
			return nil
		},
	},
}

// promptly is generous: machines that run tests stall. blocked is how long, in
// seconds, the server holds a command back in the meantime.
const (
	promptly = time.Second
	blocked  = "2"
)
