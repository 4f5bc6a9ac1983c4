package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// serveMode makes this test's binary the other process.
const serveMode = "SHARDKIT_TEST_SERVE"

func serveTest(mode string) {
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
		n++
		switch {
		case mode == "crash" && n == 2000:
			fmt.Fprintln(os.Stderr, "something\nout of memory")
			os.Exit(2)
		case mode == "fails" && n%4 == 0:
			return errors.New("ERR every fourth")
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

func remote(name, mode string) Variant {
	return Remote(name, "spin", "spin", func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), serveMode+"="+mode)
		return cmd
	})
}

func pair(old, new string) Scenario {
	return Scenario{Name: "spin", Doc: "spin", Variants: []Variant{remote("old", old), remote("new", new)}}
}

func TestRemote(t *testing.T) {
	r := mustRun(t, pair("plain", "allocates"), &Options{Load: Load{Duration: time.Second}})
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
		"garbage":       "has ended: signal: killed",
		"other":         "spin twice",
	} {
		r, err := Run(t.Context(), pair("plain", mode), &Options{Load: Load{Duration: time.Second}})
		if r != nil || err == nil || !strings.HasPrefix(err.Error(), `bench: set up variant "new": `) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v; want no result and %q", mode, r, err, want)
		}
	}

	r, err = Run(t.Context(), pair("plain", "bad end"), &Options{Load: Load{Ops: 1000}, SkipCounters: true})
	if r == nil || err == nil || !strings.Contains(err.Error(), "the last write was lost") {
		t.Errorf("a bad end: got %v, %v", r, err)
	}
}

func TestRemoteInterrupted(t *testing.T) {
	for _, mode := range []string{"plain", "silent"} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
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
