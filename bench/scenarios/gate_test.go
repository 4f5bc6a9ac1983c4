package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/slotmap"
)

// With servePart this test's binary is a build that is compared: it serves that part, at serveAddrs, and is made worse as
// serveWorse says.
const (
	servePart  = "SHARDKIT_TEST_SERVE_PART"
	serveAddrs = "SHARDKIT_TEST_SERVE_ADDRS"
	serveWorse = "SHARDKIT_TEST_SERVE_WORSE"
)

// endsAtOnce spares a build with the race detector the second that it waits before it ends.
const endsAtOnce = "GORACE=atexit_sleep_ms=0"

func serveGate(name string) int {
	parts, err := Select(true, name)
	if err == nil {
		var t *Target
		if addrs := os.Getenv(serveAddrs); addrs != "" {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(addrs, ",")})
			defer client.Close()
			t = &Target{Client: client}
		}
		err = serve(context.Background(), parts[0], t, func(ctx context.Context, s bench.Scenario) error {
			s.Variants[0] = worse(s.Variants[0], os.Getenv(serveWorse), t)
			return bench.Serve(ctx, s, os.Stdin, os.Stdout)
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// worse makes each operation ask the servers once more, for "round-trip", or take longer by a share of what it takes, for
// "0.5" by 50 %.
func worse(v bench.Variant, how string, t *Target) bench.Variant {
	var more float64
	_, err := fmt.Sscan(how, &more)
	change := busyAfter
	switch {
	case how == "dies":
		change = func(bench.Op, time.Duration) bench.Op {
			return func(context.Context) error {
				fmt.Fprintln(os.Stderr, "out of memory")
				os.Exit(2)
				return nil
			}
		}
	case how == "round-trip":
		change = func(op bench.Op, _ time.Duration) bench.Op {
			return func(ctx context.Context) error {
				if err := t.Client.Exists(ctx, slotmap.KeyForSlot("nothing", 0)).Err(); err != nil {
					return err
				}
				return op(ctx)
			}
		}
	case err != nil:
		return v
	}
	inner := v.Setup
	v.Setup = func(ctx context.Context, workers int) (*bench.Subject, error) {
		s, err := inner(ctx, workers)
		if err != nil {
			return nil, err
		}
		for i, k := range s.Kinds {
			op, err := k.Worker(0)
			if err != nil {
				return nil, err
			}
			usual, err := usually(ctx, op)
			if err != nil {
				return nil, err
			}
			extra := time.Duration(more * float64(usual))
			s.Kinds[i].Worker = func(w int) (bench.Op, error) {
				op, err := k.Worker(w)
				return change(op, extra), err
			}
		}
		return s, nil
	}
	return v
}

// usually is the median of what an operation takes.
func usually(ctx context.Context, op bench.Op) (time.Duration, error) {
	var all []float64
	for range 300 {
		start := time.Now()
		if err := op(ctx); err != nil {
			return 0, err
		}
		all = append(all, float64(time.Since(start)))
	}
	return time.Duration(median(all)), nil
}

// busyAfter keeps the processor busy for so long after each operation.
func busyAfter(op bench.Op, extra time.Duration) bench.Op {
	return func(ctx context.Context) error {
		err := op(ctx)
		for until := time.Now().Add(extra); time.Now().Before(until); {
		}
		return err
	}
}

func build(t *testing.T, part, addrs, worse string) func() *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func() *exec.Cmd {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), endsAtOnce, servePart+"="+part, serveAddrs+"="+addrs, serveWorse+"="+worse)
		return cmd
	}
}

func onePart(t *testing.T, name string) Part {
	t.Helper()
	parts, err := Select(true, name)
	if err != nil || len(parts) != 1 {
		t.Fatalf("%s: %v, %v", name, parts, err)
	}
	return parts[0]
}

func TestGateFindsARoundTrip(t *testing.T) {
	tg, c := target(t)
	addrs := strings.Join(c.Addrs(), ",")
	o := &Options{Duration: 300 * time.Millisecond, Rounds: 5}
	d, _, err := Gate(t.Context(), onePart(t, "intersect-100"), tg, o, build(t, "intersect-100", addrs, ""), build(t, "intersect-100", addrs, "round-trip"))
	if err != nil || d.Outcome != bench.Regression || !strings.Contains(d.Headline(), bench.RedisCommands) || !strings.Contains(d.Headline(), bench.RedisReads) {
		t.Fatalf("got %+v, %v", d, err)
	}
	noKeys(t, c)
}

// What servers count hardly depends on the machine, also where a write goes to many slots in
// steps that are sized by time.
func TestGateCountsWritesExactly(t *testing.T) {
	tg, c := target(t)
	addrs := strings.Join(c.Addrs(), ",")
	o := &Options{Duration: 100 * time.Millisecond, Rounds: 5}
	// One batch of the gate, which measures two where times differ.
	batch := func(p Part, b func() *exec.Cmd) ([]*bench.Result, error) {
		st, err := newStage(t.Context(), []Part{p}, tg, o)
		if err != nil {
			return nil, err
		}
		defer st.close()
		st.part = p
		s, opts := st.batch(b, b)
		opts.CountOps /= 4
		r, err := bench.Run(t.Context(), s, opts)
		return []*bench.Result{r}, err
	}
	names := []string{"publish-20-strings"}
	if os.Getenv("SHARDKIT_LONG") == "1" {
		names, o.Duration = append(names, "delta"), 300*time.Millisecond
		batch = func(p Part, b func() *exec.Cmd) ([]*bench.Result, error) {
			_, results, err := Gate(t.Context(), p, tg, o, b, b)
			return results, err
		}
	}
	for _, name := range names {
		results, err := batch(onePart(t, name), build(t, name, addrs, ""))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, r := range results {
			old, now := r.Variant("old").Counters[bench.RedisCommands], r.Variant("new").Counters[bench.RedisCommands]
			t.Logf("%s: %v and %v commands", name, old, now)
			if len(r.Marks) > 0 || old < 256 || now < old*0.95 || now > old*1.05 {
				t.Errorf("%s: %v and %v commands, marks %v", name, old, now, r.Marks)
			}
		}
	}
	noKeys(t, c)
}

func TestGateRefusals(t *testing.T) {
	for _, name := range []string{"coverage", "failover", "reader-p99-one-master"} {
		if _, _, err := Gate(t.Context(), onePart(t, name), nil, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "cannot compare builds") {
			t.Errorf("%s: got %v", name, err)
		}
		if name == "reader-p99-one-master" { // it is read in another process
			continue
		}
		if err := Serve(t.Context(), onePart(t, name), nil, os.Stdin, os.Stdout); err == nil || !strings.Contains(err.Error(), "cannot be served") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	ring := onePart(t, "ring-nodes")
	missing := func() *exec.Cmd { return exec.Command("/does/not/exist") }
	if _, _, err := Gate(t.Context(), ring, nil, nil, missing, missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such build: got %v", err)
	}
	other := build(t, "ring-ways", "", "")
	if _, _, err := Gate(t.Context(), ring, nil, nil, other, other); err == nil || !strings.Contains(err.Error(), "ring-ways") {
		t.Errorf("another part: got %v", err)
	}
}
