package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDefaultClassify(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, "timeout"},
		{fmt.Errorf("get: %w", os.ErrDeadlineExceeded), "timeout"},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "timeout"},
		{fmt.Errorf("get: %w", context.Canceled), "canceled"},
		{io.EOF, "connection"},
		{net.ErrClosed, "connection"},
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, "connection"},
		{errors.New("MOVED 42 127.0.0.1:7000"), "MOVED"},
		{fmt.Errorf("replset: slot 42: %w", errors.New("CROSSSLOT Keys in request don't hash to the same slot")), "CROSSSLOT"},
		{errors.New("I am no reply"), "other"},
		{errors.New(""), "other"},
	} {
		if got := DefaultClassify(test.err); got != test.want {
			t.Errorf("%q: got %q, want %q", test.err, got, test.want)
		}
	}
}

func TestFailuresAreBounded(t *testing.T) {
	var f failures
	for i := range 1000 {
		err := fmt.Errorf("error %d", i)
		f.add(err.Error(), err)
	}
	l := f.list()
	if len(l) > maxFailureKinds+1 || f.total() != 1000 {
		t.Errorf("got %d sorts of %d errors, want at most %d of 1000", len(l), f.total(), maxFailureKinds+1)
	}
	if l[0].Kind != "other" || l[0].Count != 1000-maxFailureKinds || len(l[0].Texts) != maxFailureTexts {
		t.Errorf("most frequent: %+v, want the rest as other, with %d texts", l[0], maxFailureTexts)
	}
}

func TestFailedOperationsAreCountedApart(t *testing.T) {
	run := func(t *testing.T, everyNth int, o *Options) *Result {
		n := 0
		return mustRun(t, one(func(context.Context) error {
			n++
			time.Sleep(time.Millisecond)
			if n%everyNth == 0 {
				time.Sleep(time.Second)
				return fmt.Errorf("MOVED %d", n)
			}
			return nil
		}), o)
	}
	o := &Options{Load: Load{Ops: 1000, SkipWarmUp: true}, SkipCounters: true}
	t.Run("some", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := run(t, 100, o)
			v := r.Variants[0]
			if v.Errors != 10 || v.Response.Count != 990 || v.Response.Max != time.Millisecond {
				t.Errorf("got %d errors, %d operations up to %v, want 10, 990, 1ms", v.Errors, v.Response.Count, v.Response.Max)
			}
			want := []Failures{{Kind: "MOVED", Count: 10, Texts: []string{"MOVED 100", "MOVED 200", "MOVED 300"}}}
			if len(v.Failures) != 1 || v.Failures[0].Kind != "MOVED" || v.Failures[0].Count != 10 || !slices.Equal(v.Failures[0].Texts, want[0].Texts) {
				t.Errorf("failures: got %+v, want %+v", v.Failures, want)
			}
			if !r.Is(Invalid) || !strings.Contains(r.Marks[0].Reason, `10 of 1000 operations of variant "a" failed (1 %)`) {
				t.Errorf("marks: got %v, want invalid for 1 %% of errors", r.Marks)
			}
		})
	})
	t.Run("few enough", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			if r := run(t, 1000, o); r.Variants[0].Errors != 1 || len(r.Marks) != 0 {
				t.Errorf("got %d errors and marks %v, want 1 and none", r.Variants[0].Errors, r.Marks)
			}
		})
	})
	t.Run("all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := run(t, 1, &Options{Load: Load{Ops: 10, SkipWarmUp: true}})
			if !r.Is(Invalid) || !strings.Contains(r.Marks[len(r.Marks)-1].Reason, `every operation of variant "a" failed (10): MOVED 1`) {
				t.Errorf("marks: %v", r.Marks)
			}
			if !r.Is(Partial) || len(r.Variants[0].Counters) != 0 {
				t.Errorf("marks %v and counters %v, want partial and none", r.Marks, r.Variants[0].Counters)
			}
		})
	})
}

func TestOutOfRangeMakesTheResultInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &Options{Load: Load{Ops: 5, SkipWarmUp: true}, MaxLatency: time.Second, SkipCounters: true}
		r := mustRun(t, one(sleeper(2*time.Second)), o)
		v := r.Variants[0].Response
		if v.Count != 0 || v.OutOfRange != 5 || v.Max != 2*time.Second || !r.Is(Invalid) {
			t.Errorf("got %+v, marks %v, want 5 out of range and invalid", v, r.Marks)
		}
	})
}
