package bench

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBadArguments(t *testing.T) {
	ok := Func("a", func(context.Context) error { return nil })
	kinds := func(k ...Kind) Variant {
		return Variant{Name: "k", Setup: func(context.Context, int) (*Subject, error) { return &Subject{Kinds: k}, nil }}
	}
	worker := func(int) (Op, error) { return func(context.Context) error { return nil }, nil }
	variants := func(v ...Variant) Scenario { return Scenario{Name: "test", Variants: v} }
	open := func(rate float64, d time.Duration) *Options {
		return &Options{Load: Load{Mode: Open, Rate: rate, Duration: d}}
	}
	for _, test := range []struct {
		name string
		s    Scenario
		o    *Options
		want string
	}{
		{"zero rate", variants(ok), open(0, time.Second), "Load.Rate is 0: an open loop needs a positive number"},
		{"negative rate", variants(ok), open(-1, time.Second), "Load.Rate is -1: an open loop needs"},
		{"rate not a number", variants(ok), open(math.NaN(), time.Second), "Load.Rate is NaN: an open loop needs"},
		{"infinite rate", variants(ok), open(math.Inf(1), time.Second), "Load.Rate is +Inf: an open loop needs"},
		{"rate of a closed loop", variants(ok), &Options{Load: Load{Rate: 5}}, "Load.Rate is 5: a closed loop has no rate"},
		{"nothing starts", variants(ok), open(1, time.Millisecond), "Load.Duration is 1ms: at 1 operations per second not one starts in it, make it longer than 1s"},
		{"too many start", variants(ok), open(1e12, 24*time.Hour), "Load.Duration is 24h0m0s: too many operations"},
		{"negative duration", variants(ok), &Options{Load: Load{Duration: -1}}, "Load.Duration is -1ns: use a positive duration"},
		{"negative interval", variants(ok), &Options{Interval: -1}, "Interval is -1ns: use a positive duration"},
		{"tiny interval", variants(ok), &Options{Interval: 1}, "Interval is 1ns: use at least 10 ms"},
		{"negative ops", variants(ok), &Options{Load: Load{Ops: -1}}, "Load.Ops is -1: use a positive number"},
		{"negative workers", variants(ok), &Options{Load: Load{Workers: -1}}, "Load.Workers is -1: use a positive number"},
		{"too many workers", variants(ok), &Options{Load: Load{Workers: 1e6}}, "Load.Workers is 1000000: use at most"},
		{"unknown mode", variants(ok), &Options{Load: Load{Mode: "ajar"}}, `Load.Mode is "ajar": use bench.Closed or bench.Open`},
		{"both warm-ups", variants(ok), &Options{Load: Load{WarmUp: 1, SkipWarmUp: true}}, "Load.WarmUp is 1ns: leave it zero with SkipWarmUp"},
		{"few rounds", variants(ok), &Options{Rounds: 4}, "Rounds is 4: use 5 to 1000"},
		{"confidence", variants(ok), &Options{Confidence: 1}, "Confidence is 1: use at least 0.5"},
		{"threshold", variants(ok), &Options{Threshold: -0.1}, "Threshold is -0.1: use a share"},
		{"error share", variants(ok), &Options{MaxErrorShare: 2}, "MaxErrorShare is 2: use a share"},
		{"latency limit", variants(ok), &Options{MaxLatency: 1}, "MaxLatency is 1ns: use 1 µs to 24 h"},
		{"ops for rounds", variants(ok, Func("b", nil)), &Options{Load: Load{Ops: 20}}, "Load.Ops is 20: 3 variants in 9 rounds (the baseline counts twice) need at least 27"},

		{"no scenario name", Scenario{Variants: []Variant{ok}}, nil, "a scenario has no name"},
		{"no variants", variants(), nil, `scenario "test" has no variants: give it at least one`},
		{"duplicate variants", variants(ok, ok), nil, `scenario "test" has two variants named "a": rename one`},
		{"variant without name", variants(Func("", nil)), nil, "a variant has no name"},
		{"variant with a bad name", variants(Func("a b", nil)), nil, `variant name "a b" holds a space`},
		{"variant named as the twin", variants(ok, Func("a'", nil)), nil, `variant name "a'" is taken by the baseline's twin`},
		{"too many variants", variants(make([]Variant, 65)...), nil, "has 65 variants: split it"},
		{"no setup", variants(Variant{Name: "a"}), nil, `variant "a" has no Setup`},
		{"no operation", variants(Func("a", nil)), nil, `worker 0 of variant "a", kind "op": neither an operation nor an error`},
		{"no kinds", variants(kinds()), nil, `variant "k" has 0 kinds of operation`},
		{"duplicate kinds", variants(kinds(Kind{Name: "get", Worker: worker}, Kind{Name: "get", Worker: worker})), nil, `variant "k" has two kinds named "get"`},
		{"kind with a bad name", variants(kinds(Kind{Name: "a/b", Worker: worker})), nil, `kind name "a/b" holds`},
		{"negative weight", variants(kinds(Kind{Name: "get", Weight: -1, Worker: worker})), nil, `kind "get" has weight -1`},
		{"no worker", variants(kinds(Kind{Name: "get"})), nil, `kind "get" has no Worker`},
		{"nil subject", variants(Variant{Name: "a", Setup: func(context.Context, int) (*Subject, error) { return nil, nil }}), nil, "Setup returned neither a subject nor an error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := Run(t.Context(), test.s, test.o)
			if err == nil || r != nil {
				t.Fatalf("got result %v and error %v, want an error alone", r, err)
			}
			if !strings.HasPrefix(err.Error(), "bench: ") || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line that begins with bench: and holds %q", err, test.want)
			}
		})
	}
}

// tracked is a variant that counts what was set up and taken down.
func tracked(name string, up, down *[]string, setupErr error) Variant {
	return Variant{Name: name, Setup: func(context.Context, int) (*Subject, error) {
		if setupErr != nil {
			return nil, setupErr
		}
		*up = append(*up, name)
		return &Subject{
			Kinds: []Kind{{Name: "op", Worker: func(int) (Op, error) { return sleeper(time.Millisecond), nil }}},
			TearDown: func(ctx context.Context) error {
				*down = append(*down, name)
				return ctx.Err()
			},
		}, nil
	}}
}

func TestFailedSetupTakesTheOthersDown(t *testing.T) {
	var up, down []string
	cause := errors.New("no server")
	s := Scenario{Name: "test", Variants: []Variant{tracked("a", &up, &down, nil), tracked("b", &up, &down, nil), tracked("c", &up, &down, cause)}}
	r, err := Run(t.Context(), s, nil)
	if r != nil || !errors.Is(err, cause) || !strings.Contains(err.Error(), `set up variant "c"`) {
		t.Errorf("got %v, %v, want the error of c alone", r, err)
	}
	if got := strings.Join(down, ""); got != "ba" {
		t.Errorf("took down %q, want ba", got)
	}
}

func TestInterruptedRunIsPartial(t *testing.T) {
	why := errors.New("the user pressed a key")
	for _, l := range []Load{
		{Duration: 10 * time.Second},
		{Duration: 10 * time.Second, Workers: 4},
		{Mode: Open, Rate: 200, Duration: 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var up, down []string
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			time.AfterFunc(6*time.Second, func() { cancel(why) })
			s := Scenario{Name: "test", Variants: []Variant{tracked("a", &up, &down, nil), tracked("b", &up, &down, nil)}}
			r, err := Run(ctx, s, inBubble(&Options{Load: l}))
			if !errors.Is(err, ErrInterrupted) || !errors.Is(err, why) {
				t.Errorf("%s: got error %v, want ErrInterrupted and the cause", l.Mode, err)
			}
			if r == nil {
				t.Fatalf("%s: no result", l.Mode)
			}
			if !r.Is(Partial) || r.Is(Invalid) || !strings.Contains(r.Marks[0].Reason, "interrupted after 6.0") && !strings.Contains(r.Marks[0].Reason, "interrupted after 6s") {
				t.Errorf("%s: marks: %v", l.Mode, r.Marks)
			}
			if took := r.Ended.Sub(r.Started); took > 6100*time.Millisecond {
				t.Errorf("%s: ended after %v, want 6s", l.Mode, took)
			}
			for _, v := range r.Variants {
				if v.Response.Count < 100 || v.Errors != 0 {
					t.Errorf("%s: %s has %d operations and %d errors, want many and none", l.Mode, v.Name, v.Response.Count, v.Errors)
				}
			}
			if c := r.Comparison("b", "response_p50"); c == nil || c.Rounds < 4 || c.Rounds > 6 {
				t.Errorf("%s: comparison %+v, want one over about 5 rounds", l.Mode, c)
			}
			// The context of a tear-down is alive, or its error would be here.
			if strings.Join(down, "") != "aba" || strings.Contains(err.Error(), "tear down") {
				t.Errorf("%s: took down %v with %v, want a, b, a in peace", l.Mode, down, err)
			}
		})
	}
}

func TestInterruptionCutsOffHangingOperations(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	for _, l := range []Load{{Workers: 3}, {Mode: Open, Rate: 100}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			r, err := Run(ctx, one(hang), inBubble(&Options{Load: l}))
			if !errors.Is(err, ErrInterrupted) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want ErrInterrupted and DeadlineExceeded", err)
			}
			if v := r.Variants[0]; v.Errors != 0 || v.Response.Count != 0 || r.Is(Invalid) {
				t.Errorf("got %d errors, %d operations, marks %v: what was cut off is neither", v.Errors, v.Response.Count, r.Marks)
			}
		})
	}
}

func TestContextThatHasEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := Run(ctx, one(sleeper(1)), nil)
	if r != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, want nil and Canceled", r, err)
	}
}

func TestTearDownErrorComesWithTheResult(t *testing.T) {
	broken := errors.New("still in use")
	v := Func("a", func(context.Context) error { return nil })
	s := Scenario{Name: "test", Variants: []Variant{{Name: "a", Setup: func(ctx context.Context, n int) (*Subject, error) {
		sub, err := v.Setup(ctx, n)
		sub.TearDown = func(context.Context) error { return broken }
		return sub, err
	}}}}
	r, err := Run(t.Context(), s, &Options{Load: Load{Ops: 10, SkipWarmUp: true}})
	if r == nil || !errors.Is(err, broken) || !strings.Contains(err.Error(), `bench: tear down variant "a"`) {
		t.Errorf("got %v, %v, want a result and the error", r, err)
	}
}

func TestProgress(t *testing.T) {
	for _, l := range []Load{
		{Duration: 4 * time.Second, WarmUp: time.Second},
		{Ops: 3000},
		{Mode: Open, Rate: 300, Duration: 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen []Progress
			var at []time.Time
			s := Scenario{Name: "test", Variants: []Variant{Func("a", sleeper(time.Millisecond)), Func("b", sleeper(time.Millisecond))}}
			o := inBubble(&Options{Load: l, Progress: func(p Progress) { seen, at = append(seen, p), append(at, time.Now()) }})
			r := mustRun(t, s, o)

			var phases []Phase
			variants := map[string]bool{}
			for i, p := range seen {
				if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
					phases = append(phases, p.Phase)
				}
				if p.Phase == PhaseMeasure {
					variants[p.Variant] = true
				}
				if p.Done < 0 || p.Done > 1 || p.ETA < 0 || i > 0 && p.Done < seen[i-1].Done || p.Scenario != "test" {
					t.Errorf("%+v: report %d: %+v after %+v", l, i, p, seen[max(i-1, 0)])
				}
			}
			want := []Phase{PhaseSetUp, PhaseWarmUp, PhaseMeasure, PhaseCount, PhaseDone}
			if len(phases) != len(want) {
				t.Errorf("%+v: phases %v, want %v", l, phases, want)
			}
			last := seen[len(seen)-1]
			if last.Done != 1 || last.ETA != 0 || last.Ops != r.Variants[0].Response.Count+r.Variants[1].Response.Count+r.Variants[2].Response.Count {
				t.Errorf("%+v: the last report is %+v", l, last)
			}
			if !variants["b"] && l.Mode != Open || variants["b"] && l.Mode == Open {
				t.Errorf("%+v: variants reported while measuring: %v", l, variants)
			}
			for i, p := range seen {
				if p.Done > 0.4 && p.Done < 0.6 && p.Phase == PhaseMeasure {
					near(t, "ETA half-way", p.ETA.Seconds(), r.Ended.Sub(at[i]).Seconds(), 0.1)
				}
			}
		})
	}
}
