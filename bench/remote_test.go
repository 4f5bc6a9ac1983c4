package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serveMode makes this test's binary the other process.
const serveMode = "SHARDKIT_TEST_SERVE"

func serveTest(mode string) {
	var mu sync.Mutex
	n := 0
	switch mode {
	case "garbage":
		fmt.Println("no JSON")
		select {}
	case "crash at once":
		fmt.Fprintln(os.Stderr, "there is no such command")
		os.Exit(3)
	case "silent":
		os.Stdin.Read(make([]byte, 1)) // until its input ends
		os.Exit(0)
	}
	spin := busy(300)
	var keep [][]byte
	op := func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		n++
		switch {
		case mode == "crash" && n == 200:
			fmt.Fprintln(os.Stderr, "something\nout of memory")
			os.Exit(2)
		case mode == "fails" && n%4 == 0:
			return errors.New("ERR every fourth")
		case mode == "hangs" && n == 20:
			select {}
		case mode == "allocates":
			keep = append(keep[:0], make([]byte, 100))
		}
		return spin(ctx)
	}
	doc := "spin"
	if mode == "other" {
		doc = "spin twice"
	}
	v := Func("spin", op)
	if mode == "bad end" {
		inner := v.Setup
		v.Setup = func(ctx context.Context, workers int) (*Subject, error) {
			s, err := inner(ctx, workers)
			s.TearDown = func(context.Context) error { return errors.New("the last write was lost") }
			return s, err
		}
	}
	if err := Serve(context.Background(), Scenario{Name: "spin", Doc: doc, Variants: []Variant{v}}, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serving(mode string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	// With the race detector a process waits for a second before it ends.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", serveMode+"="+mode)
	return cmd
}

func remote(name, mode string) Variant {
	return Remote(name, "spin", "spin", func() *exec.Cmd { return serving(mode) })
}

func process(t *testing.T, mode string) *Process {
	t.Helper()
	p, err := StartProcess(t.Context(), "spin", "spin", serving(mode))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_ = p.Close(ctx)
	})
	return p
}

func pair(old, new string) Scenario {
	return Scenario{Name: "spin", Doc: "spin", Variants: []Variant{remote("old", old), remote("new", new)}}
}

func TestRemote(t *testing.T) {
	r := mustRun(t, pair("plain", "allocates"), &Options{Load: Load{Ops: 6000, SkipWarmUp: true}})
	if len(r.Marks) > 0 || r.Variant("old'") == nil {
		t.Fatalf("got marks %v, variants %+v", r.Marks, r.Variants)
	}
	for _, v := range r.Variants {
		if v.Response.Count < 1000 || v.Errors != 0 || v.Response.P50 <= 0 || v.Kinds[0].Name != "op" {
			t.Errorf("got %+v", v)
		}
	}
	old, changed := r.Variant("old").Counters, r.Variant("new").Counters
	if old[AllocsPerOp] > 0.1 || changed[AllocsPerOp] < 1 || changed[AllocsPerOp] > 1.1 || changed[BytesPerOp] < 100 {
		t.Errorf("got counters %v and %v, want one allocation more", old, changed)
	}
}

func TestRemoteFailures(t *testing.T) {
	r := mustRun(t, pair("plain", "fails"), &Options{Load: Load{Duration: 300 * time.Millisecond}, SkipCounters: true})
	if v := r.Variant("new"); v.Errors == 0 || v.Failures[0].Kind != "ERR" || !r.Is(Invalid) {
		t.Errorf("got %+v, marks %v", v, r.Marks)
	}

	// A process that dies ends the run, which says so; what was measured is there.
	r, err := Run(t.Context(), pair("plain", "crash"), &Options{Load: Load{Duration: time.Minute, SkipWarmUp: true}})
	if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), `variant "new"`) || !strings.Contains(err.Error(), "has ended: out of memory") {
		t.Errorf("a crash: got %v", err)
	}
	if r == nil || !r.Is(Partial) || r.Variant("old").Response.Count == 0 {
		t.Errorf("a crash: got %+v", r)
	}

	for mode, want := range map[string]string{
		"crash at once": "has ended: there is no such command",
		"garbage":       "which is no reply",
		"other":         "spin twice",
	} {
		r, err := Run(t.Context(), pair("plain", mode), &Options{Load: Load{Duration: time.Second}})
		if r != nil || err == nil || !strings.HasPrefix(err.Error(), `bench: set up variant "new": `) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v; want no result and %q", mode, r, err, want)
		}
	}

	r, err = Run(t.Context(), pair("plain", "bad end"), &Options{Load: Load{Ops: 1000, SkipWarmUp: true}, SkipCounters: true})
	if r == nil || err == nil || !strings.Contains(err.Error(), "the last write was lost") {
		t.Errorf("a bad end: got %v, %v", r, err)
	}
}

func TestRemoteInterrupted(t *testing.T) {
	for _, mode := range []string{"plain", "silent"} {
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		start := time.Now()
		_, err := Run(ctx, pair("plain", mode), &Options{Load: Load{Duration: time.Minute}})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 9*time.Second {
			t.Errorf("%s: got %v after %v", mode, err, time.Since(start))
		}
	}
}

func TestBatchNeedsAClosedLoopOfOne(t *testing.T) {
	for _, l := range []Load{{Mode: Open, Rate: 100}, {Workers: 2}} {
		l.Duration = time.Second
		if _, err := Run(t.Context(), pair("plain", "plain"), &Options{Load: l}); err == nil || !strings.Contains(err.Error(), "closed loop of one worker") {
			t.Errorf("%+v: got %v", l, err)
		}
	}
}

func TestProcessRun(t *testing.T) {
	p := process(t, "plain")
	for range 2 {
		r, err := p.Run(t.Context(), &Options{Load: Load{Mode: Open, Rate: 1000, Duration: 500 * time.Millisecond, SkipWarmUp: true}, Seed: 7, Interval: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if r.Scenario != "spin" || r.Settings.Seed != 7 || r.Settings.Load.WarmUp != 0 || len(r.Variants) != 1 || r.Variants[0].Response.Count != 500 || r.Generator.Intended != 500 {
			t.Errorf("got %+v, %+v", r, r.Generator)
		}
		if h, err := r.Generator.Lateness.Histogram(); err != nil || h.TotalCount() != 500 {
			t.Errorf("the lateness of %v operations, want 500: %v", h, err)
		}
		var n int64
		for _, i := range r.Intervals {
			h, err := i.Histogram()
			if err != nil || h.TotalCount() != i.Response.Count {
				t.Fatalf("an interval of %d operations has a histogram of %v, %v", i.Response.Count, h, err)
			}
			n += h.TotalCount()
		}
		if n != 500 {
			t.Errorf("the intervals hold %d operations, want 500", n)
		}
	}
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("in the end: %v", err)
	}
}

func TestProcessRunFailures(t *testing.T) {
	load := Load{Mode: Open, Rate: 1000, Duration: 5 * time.Second, Drain: time.Millisecond, SkipWarmUp: true}
	for _, tc := range []struct{ mode, want string }{
		{"crash", "has ended: out of memory"},
		{"hangs", "does not answer: a run of 51ms is not over after 61ms"},
	} {
		p := process(t, tc.mode)
		l := load
		if tc.mode == "hangs" {
			l.Duration, p.patience = 50*time.Millisecond, 10*time.Millisecond
		}
		if r, err := p.Run(t.Context(), &Options{Load: l}); r != nil || err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, %v, want %q", tc.mode, r, err, tc.want)
		}
	}
	p := process(t, "plain")
	for _, l := range []Load{{}, {Mode: Open}} {
		if _, err := p.Run(t.Context(), &Options{Load: l}); err == nil || !strings.HasPrefix(err.Error(), "bench: Load.") {
			t.Errorf("%+v: got %v", l, err)
		}
	}
	for _, req := range []request{{Do: "run"}, {Do: "run", Run: &runRequest{}}} {
		if _, err := p.ask(t.Context(), req); err == nil || !strings.Contains(err.Error(), "load of an open loop") {
			t.Errorf("%+v: got %v", req, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Run(ctx, &Options{Load: load}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("interrupted: got %v", err)
	}
	// It stops what it does, instead of going on for seconds.
	start := time.Now()
	if err := p.Close(t.Context()); err != nil || time.Since(start) > 4*time.Second {
		t.Errorf("closed after an interruption: %v after %v", err, time.Since(start))
	}
}

// A process runs before others where this one may let a thread of its own do so.
func TestProcessRunsInRealTime(t *testing.T) {
	p := process(t, "plain")
	r, err := p.Run(t.Context(), &Options{Load: Load{Mode: Open, Rate: 1000, Duration: 50 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	may := exec.Command("chrt", "--fifo", "1", "true").Run() == nil
	if r.Generator.RealTime != may {
		t.Errorf("real-time: %v, where chrt says that it is allowed: %v", r.Generator.RealTime, may)
	}
	if text := r.Headline(); strings.Contains(text, "in a real-time process") != may {
		t.Errorf("the headline says %q", text)
	}
}

// The end of its input ends what a serving process does, and it takes back what it set up.
func TestServeHangsUp(t *testing.T) {
	var asked, removed atomic.Bool
	v := Variant{Name: "slow", Setup: func(context.Context, int) (*Subject, error) {
		op := func(ctx context.Context) error {
			asked.Store(true)
			<-ctx.Done()
			return ctx.Err()
		}
		return &Subject{
			Kinds:    []Kind{{Name: "op", Worker: func(int) (Op, error) { return op, nil }}},
			TearDown: func(context.Context) error { removed.Store(true); return nil },
		}, nil
	}}
	for _, request := range []string{
		`{"do":"batch","ops":1}`,
		`{"do":"run","run":{"load":{"mode":"open","rate":10,"duration_ns":60000000000}}}`,
	} {
		asked.Store(false)
		removed.Store(false)
		in, requests := io.Pipe()
		served := make(chan error)
		go func() {
			served <- Serve(t.Context(), Scenario{Name: "slow", Variants: []Variant{v}}, in, io.Discard)
		}()
		if _, err := io.WriteString(requests, request+"\n"); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); !asked.Load() && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		requests.Close()
		if err := <-served; err != nil || !asked.Load() || !removed.Load() {
			t.Errorf("%s: got %v; asked %v, removed %v", request, err, asked.Load(), removed.Load())
		}
	}
}
