//go:build unix

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness/harnesstest"
)

func long() bool { return os.Getenv("SHARDKIT_LONG") == "1" }

// judge runs the checker, and returns what it found.
func judge(t *testing.T, o *Options) *Report {
	t.Helper()
	h, err := Run(t.Context(), o)
	if err != nil {
		harnesstest.Skip(t, err)
	}
	r := Check(h)
	if !r.OK() && o.Worker == "" {
		f, err := os.CreateTemp("", "shardkit-soak-*.jsonl.gz")
		if err == nil {
			err = errors.Join(h.Write(f), f.Close())
			t.Logf("seed %d: its history is %s (%v)", o.Seed, f.Name(), err)
		}
	}
	return r
}

// busy is the margin beside other tests, where operations wait for a processor.
const busy = 5 * time.Second

// TestHolds breaks everything for a while: 5 s in which all goes five times as fast,
// or a minute with the default options.
func TestHolds(t *testing.T) {
	t.Parallel()
	o := &Options{Seed: rand.Uint64(), Duration: 5 * time.Second, Heartbeat: 200 * time.Millisecond, Margin: busy}
	if long() {
		o.Duration, o.Heartbeat, o.Margin = time.Minute, time.Second, 0
	}
	if text := os.Getenv("SHARDKIT_SEED"); text != "" {
		var err error
		if o.Seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal("SHARDKIT_SEED:", err)
		}
	}
	r := judge(t, o)
	var b strings.Builder
	if err := WriteText(&b, r); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	if !r.OK() {
		t.Errorf("%d violations; again: SHARDKIT_SEED=%d go test -run '^TestHolds$' ./tiercache/soak", r.Violated, o.Seed)
	}
	// It is worth something only if there was something to see.
	if len(r.Faults) < 3 || r.ops(Kind.Write).OK < 50 || r.ops(func(k Kind) bool { return !k.Write() }).OK < 500 {
		t.Errorf("too little happened: %d faults, %d operations", r.faults(), r.ops(func(Kind) bool { return true }).OK)
	}
}

// TestWithoutFaults: the checker sees nothing where nothing is done, and all is
// answered, by every client and at default options.
func TestWithoutFaults(t *testing.T) {
	t.Parallel()
	for _, client := range []string{"goredis", "rueidis"} {
		t.Run(client, func(t *testing.T) {
			t.Parallel()
			r := judge(t, &Options{Seed: 1, Client: client, Processes: 2, Duration: 2 * time.Second, Rate: 200, Margin: busy, Faults: []FaultKind{}})
			all := r.ops(func(Kind) bool { return true })
			if !r.OK() || all.All < 100 || all.OK < all.All/2 {
				t.Errorf("got %v, %d of %d operations answered", r.Violations, all.OK, all.All)
			}
		})
	}
}

// TestInterrupted: with its context a run ends, and leaves no process.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan time.Time, 1)
	h, err := Run(ctx, &Options{
		Seed: 1, Heartbeat: 200 * time.Millisecond, Schedule: everyShard(Step{Kind: Freeze, Process: -1, For: time.Minute}),
		Progress: func(p Progress) {
			if len(p.Now) == 3 && ctx.Err() == nil {
				ended <- time.Now() // a busy machine may have taken long until here
				cancel()
			}
		},
	})
	if h == nil {
		harnesstest.Skip(t, err)
	}
	if !errors.Is(err, context.Canceled) || len(h.Ops) == 0 {
		t.Fatalf("got %v with %d operations, want context.Canceled, and what there was", err, len(h.Ops))
	}
	if took := time.Since(<-ended); took > 30*time.Second { // a freeze lasts a minute
		t.Errorf("it took %v to end", took)
	}
	for i := range h.Faults {
		if h.Faults[i].Error != "" {
			t.Errorf("%v was not undone: %s", h.Faults[i].Step, h.Faults[i].Error)
		}
	}
}

// TestCrashIsSeen: of a process that ends by itself, or says nonsense.
func TestCrashIsSeen(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "worker")
	for text, want := range map[string]string{
		"read word; echo dead >&2; exit 3": "dead",
		"echo nonsense; read word; exit 0": "nonsense",
		"exit 0":                           "ended by itself",
	} {
		if err := os.WriteFile(script, []byte("#!/bin/sh\necho '{\"did\":\"ready\"}'\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		s := newStarter()
		h := &History{}
		p, err := startProcess(s, script, config{}, os.Stdin, h.add)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.order(t.Context(), "ready"); err != nil {
			t.Fatal(err)
		}
		p.order(t.Context(), "start")
		<-p.gone
		close(s)
		if got := fmt.Sprint(h.Incidents); len(h.Incidents) == 0 || h.Incidents[0].Kind != "crash" || !strings.Contains(got, want) {
			t.Errorf("%s: got %v, want a crash that tells %q", text, got, want)
		}
	}
}

// TestOrphansEnd: processes do not outlive who started them, stopped or not.
func TestOrphansEnd(t *testing.T) {
	t.Parallel()
	if os.Getenv(orphanEnv) != "" {
		orphan(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrphansEnd$", "-test.v")
	cmd.Env = append(os.Environ(), orphanEnv+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var pids []int
	text := make([]byte, 0, 4096)
	for !strings.Contains(string(text), "pids end") {
		n, err := out.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if err != nil {
			t.Skipf("no processes: %s", text) // no server: the run itself says so
		}
	}
	_, list, _ := strings.Cut(string(text), "pids begin")
	list, _, _ = strings.Cut(list, "pids end")
	for _, word := range strings.Fields(list) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 4 {
		t.Fatalf("got pids %v, want 4", pids)
	}
	cmd.Process.Kill()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		left := 0
		for _, pid := range pids {
			if alive(pid) {
				left++
			}
		}
		if left == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of the processes %v are left 20 s after who started them was killed", left, pids)
		}
	}
}

const orphanEnv = "SOAK_TEST_ORPHAN"

// orphan tells the pids of a run's processes, of which one is stopped.
func orphan(t *testing.T) {
	r := &run{}
	told := false
	_, err := newRun(t.Context(), &Options{
		Heartbeat: 200 * time.Millisecond, Schedule: []Step{{Kind: StopProc, Shard: -1, For: time.Minute}},
		Progress: func(p Progress) {
			if len(p.Now) == 1 && !told {
				told = true
				fmt.Print("pids begin")
				for n := range r.opts.Processes {
					fmt.Print(" ", r.process(n).cmd.Process.Pid)
				}
				fmt.Println(" pids end")
			}
		},
	}, r)
	if err != nil {
		harnesstest.Skip(t, err)
	}
}

// alive reports whether there is such a process, other than as a zombie that
// nobody waits for.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		_, after, _ := strings.Cut(string(stat), ") ")
		return !strings.HasPrefix(after, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}

// TestCopiesAreRead: some keys are hot enough that their copies are read, while the shards
// that hold them stop and come back; and nothing is read from them beyond the bound.
func TestCopiesAreRead(t *testing.T) {
	if !long() {
		t.Skip("needs a load that a machine busy with other tests does not give: SHARDKIT_LONG=1 runs it")
	}
	t.Parallel()
	for seed := range uint64(6) { // one will do, even there
		r := judge(t, &Options{
			Seed: 1 + seed, Heartbeat: 200 * time.Millisecond, Duration: 5 * time.Second, Rate: 500,
			Schedule: freezes(0, 1200*ms, 500*ms, 1, 2100*ms, 500*ms),
		})
		if !r.OK() {
			t.Fatalf("%v", r.Violations)
		}
		t.Logf("seed %d: %d reads were answered by copies", 1+seed, r.Copied)
		if r.Copied > 0 {
			return
		}
	}
	t.Error("no read was answered by a copy")
}
