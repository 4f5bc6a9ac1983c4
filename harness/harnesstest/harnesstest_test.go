package harnesstest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// A recorder is a testing.TB that notes how a test ended instead of ending this one.
type recorder struct {
	testing.TB
	skipped, failed bool
	log             strings.Builder
	cleanups        []func()
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool     { return r.failed }
func (r *recorder) Error(args ...any) {
	r.failed = true
	fmt.Fprintln(&r.log, args...)
}
func (r *recorder) Logf(format string, args ...any) { fmt.Fprintf(&r.log, format+"\n", args...) }
func (r *recorder) Skip(args ...any) {
	r.skipped = true
	fmt.Fprintln(&r.log, args...)
	runtime.Goexit()
}
func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}
func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// run runs a test body to its end, whichever way it ends, and its cleanups.
func (r *recorder) run(body func(t testing.TB)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(r)
	}()
	<-done
	for _, f := range r.cleanups {
		f()
	}
}

func TestSkipOrFail(t *testing.T) {
	unsupported := fmt.Errorf("harness: kill: %w", harness.ErrUnsupported)
	none := fmt.Errorf("harness: %w", harness.ErrNoServer)
	other := fmt.Errorf("harness: node-1 did not start")
	for _, tc := range []struct {
		name        string
		err         error
		requireLive string
		skipped     bool
	}{
		{"no server", none, "", true},
		{"no server, live required", none, "1", false},
		{"unsupported", unsupported, "", true},
		{"unsupported, live required", unsupported, "1", false},
		{"a server that fails is never skipped", other, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("SHARDKIT_REQUIRE_LIVE", tc.requireLive)
			var r recorder
			r.run(func(t testing.TB) { Skip(t, tc.err) })
			if r.skipped != tc.skipped || r.failed == tc.skipped {
				t.Errorf("Skip(%v): skipped %v, failed %v, want skipped %v", tc.err, r.skipped, r.failed, tc.skipped)
			}
			if !strings.Contains(r.log.String(), tc.err.Error()) {
				t.Errorf("Skip(%v) said %q, want the reason in it", tc.err, r.log.String())
			}
		})
	}
}

func TestMoreThanOneOptions(t *testing.T) {
	var r recorder
	r.run(func(t testing.TB) { Shards(t, harness.Options{}, harness.Options{}) })
	if !r.failed {
		t.Error("two Options were accepted")
	}
}

// A failed test shows what was done to its servers, and its servers are gone afterwards.
func TestFailedTestPrintsItsTimeline(t *testing.T) {
	SharedShards(t) // skips this test where there is no server
	var s *harness.Shards
	var r recorder
	r.run(func(t testing.TB) {
		s = Shards(t, harness.Options{Shards: 1, Private: true})
		if err := s.Nodes()[0].Freeze(); err != nil {
			t.Fatal(err)
		}
		t.Error("something is wrong")
	})
	if log := r.log.String(); !strings.Contains(log, "freeze") || !strings.Contains(log, s.Provider()) {
		t.Errorf("the log of a failed test is %q, want the fault and the provider in it", log)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if got := s.Nodes()[0].State(ctx); got != harness.Dead {
		t.Errorf("after the test the shard is %v, want dead", got)
	}
}

func TestSharedServersAreStartedOnce(t *testing.T) {
	if a, b := SharedShards(t), SharedShards(t); a != b {
		t.Error("two calls gave two groups of shards")
	}
	if a, b := SharedCluster(t), SharedCluster(t); a != b {
		t.Error("two calls gave two clusters")
	}
}
