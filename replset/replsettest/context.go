package replsettest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var contextRules = []Rule{
	{
		"RS-023", "ended-context",
		"with a context that has ended, each method returns at once, with an error for which errors.Is(err, ctx.Err()) holds",
		eachWay(func(p *probe, w way) error {
			key := p.key("ended" + w.name)
			cancelled, cancel := context.WithCancel(context.Background())
			cancel()
			expired, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
			defer cancel()
			for _, ctx := range []context.Context{cancelled, expired} {
				if err := thrice(func() error {
					start := time.Now()
					v, err := w.run(ctx, p.Backend, key, "GET", key)
					if err == nil {
						return fmt.Errorf("got %s and no error", show(v))
					}
					if !errors.Is(err, ctx.Err()) {
						return fmt.Errorf("the error is %q, want one that wraps %q", err, ctx.Err())
					}
					if took := time.Since(start); took > promptly {
						return &late{fmt.Errorf("it took %v", took)}
					}
					return nil
				}); err != nil {
					return err
				}
			}
			return nil
		}),
	},
	{
		"RS-024", "cancellation-is-prompt",
		"when the context ends during a call, the method returns promptly, with an error for which errors.Is(err, ctx.Err()) holds",
		func(p *probe) error {
			key := p.key("prompt")
			if err := p.known("BLPOP", key, "0.001"); err != nil {
				return err
			}
			for _, w := range ways[:2] { // nothing blocks inside MULTI
				if err := thrice(func() error {
					ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
					defer cancel()
					start := time.Now()
					v, err := w.run(ctx, p.Backend, key, "BLPOP", key, blocked)
					switch took := time.Since(start); {
					case took > promptly: // the server may have answered meanwhile
						return &late{fmt.Errorf("%s: returned %s, %v %v after the call, 50ms were allowed", w.name, show(v), err, took)}
					case err == nil:
						return fmt.Errorf("%s: got %s and no error", w.name, show(v))
					case !errors.Is(err, context.DeadlineExceeded):
						return fmt.Errorf("%s: the error is %q, want one that wraps %q", w.name, err, context.DeadlineExceeded)
					}
					return nil
				}); err != nil {
					return err
				}
			}
			return nil
		},
	},
}

// promptly is generous, and thrice forgives: machines that run tests stall. blocked is how long, in
// seconds, the server holds a command back in the meantime.
const (
	promptly = time.Second
	blocked  = "2"
)
