package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/bench/scenarios"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestBenchList(t *testing.T) {
	got := shardkit(t, t.Context(), "", "bench", "list")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	all := scenarios.All()
	if got.code != exitOK || got.err != "" || len(lines) != len(all) {
		t.Fatalf("got %+v, want a line for each of %d scenarios", got, len(all))
	}
	column := strings.Index(lines[0], all[0].Doc)
	for i, s := range all {
		if !strings.HasPrefix(lines[i], s.Name+" ") || strings.Index(lines[i], s.Doc) != column {
			t.Errorf("got %q, want %s and, in column %d, %s", lines[i], s.Name, column, s.Doc)
		}
	}

	got = shardkit(t, t.Context(), "", "bench", "list", "--json")
	lines = strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != exitOK || len(lines) != len(all) {
		t.Fatalf("got %+v", got)
	}
	for i, s := range all {
		var l benchLine
		if err := json.Unmarshal([]byte(lines[i]), &l); err != nil {
			t.Fatalf("%q: %v", lines[i], err)
		}
		if l.Name != s.Name || l.Doc != s.Doc || l.Cluster != s.Cluster || l.Load != s.Load || len(l.Parts) != len(s.Parts) || l.Parts[0].Name != s.Parts[0].Name {
			t.Errorf("got %+v, want what %s is", l, s.Name)
		}
	}
}

func TestBenchHelpHasExamples(t *testing.T) {
	for _, args := range [][]string{{"bench", "list", "--help"}, {"bench", "run", "--help"}, {"bench", "gate", "--help"}, {"bench", "compare", "--help"}} {
		got := shardkit(t, t.Context(), "", args...)
		if got.code != exitOK || !strings.Contains(got.out, "Example") {
			t.Errorf("%v: got exit %d, and no example in\n%s", args, got.code, got.out)
		}
	}
}

func TestBenchBadInput(t *testing.T) {
	for _, tc := range []struct {
		name  string
		args  []string
		code  int
		words []string
	}{
		{"no scenario", nil, exitUsage, []string{"<name>"}},
		{"unknown scenario", []string{"frobnicate"}, exitUsage, []string{"frobnicate", "publish, delta"}},
		{"known and unknown", []string{"delta", "frobnicate"}, exitUsage, []string{"frobnicate"}},
		{"zero rate", []string{"intersect", "--rate", "0"}, exitUsage, []string{"--rate", "more than 0"}},
		{"negative rate", []string{"intersect", "--rate=-5"}, exitUsage, []string{"--rate", "more than 0"}},
		{"no rate at all", []string{"intersect", "--rate", "fast"}, exitUsage, []string{"--rate", "fast"}},
		{"endless rate", []string{"intersect", "--rate", "Inf"}, exitUsage, []string{"rate", "operations per second"}},
		{"rate where there is none", []string{"publish", "--rate", "5"}, exitUsage, []string{"one writer at a time"}},
		{"zero duration", []string{"delta", "--duration", "0s"}, exitUsage, []string{"--duration", "more than 0"}},
		{"negative duration", []string{"delta", "--duration=-3s"}, exitUsage, []string{"duration", "-3s", "positive"}},
		{"duration without a unit", []string{"delta", "--duration", "10"}, exitUsage, []string{"--duration", "10"}},
		{"duration of a computation", []string{"coverage", "--duration", "1s"}, exitUsage, []string{"computed"}},
		{"zero workers", []string{"intersect", "--workers", "0"}, exitUsage, []string{"--workers"}},
		{"negative workers", []string{"intersect", "--workers=-1"}, exitUsage, []string{"workers", "at least 1"}},
		{"zero rounds", []string{"delta", "--rounds", "0"}, exitUsage, []string{"--rounds"}},
		{"few rounds", []string{"delta", "--rounds", "4"}, exitUsage, []string{"rounds", "5 to 1000"}},
		{"negative seed", []string{"coverage", "--seed=-1"}, exitUsage, []string{"--seed"}},
		{"two sorts of servers", []string{"delta", "--addr", "127.0.0.1:1", "--server", "redis-server"}, exitUsage, []string{"--server", "--addr"}},
		{"a cache on a cluster", []string{"cache", "--addr", "127.0.0.1:1"}, exitUsage, []string{"--addr", "cache"}},
		{"peer without a command", []string{"delta", "--peer", "ioredis"}, exitUsage, []string{"--peer", "NAME=COMMAND"}},
		{"no such folder", []string{"coverage", "--json", "/does/not/exist/report.json"}, exitUsage, []string{"--json", "/does/not/exist"}},
		{"no such server", []string{"delta", "--server", "/does/not/exist"}, exitFailed, []string{"/does/not/exist"}},
		{"no port", []string{"delta", "--addr", "localhost"}, exitFailed, []string{"host:port"}},
		{"unreachable", []string{"delta", "--addr", "127.0.0.1:1"}, exitFailed, []string{"127.0.0.1:1", "connection refused"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := shardkit(t, t.Context(), "", append([]string{"bench", "run"}, tc.args...)...)
			oneError(t, got, tc.code, tc.words...)
			if strings.Count(got.err, "bench") > 1 {
				t.Errorf("it says bench more than once: %q", got.err)
			}
		})
	}
}

// finalError fails unless the last line on stderr is the only one that tells an error, and holds all the words.
func finalError(t *testing.T, got result, words ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(got.err, "\n"), "\n")
	last := lines[len(lines)-1]
	if got.code != exitFailed || strings.Count(got.err, "shardkit: ") != 1 || !strings.HasPrefix(last, "shardkit: ") {
		t.Errorf("got exit %d and %q, want 1 and one error in the end", got.code, got.err)
	}
	for _, w := range words {
		if !strings.Contains(last, w) {
			t.Errorf("got %q, want it to say %q", last, w)
		}
	}
}

func TestBenchReport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	got := shardkit(t, t.Context(), "", "bench", "run", "coverage", "--seed", "42", "--json", file)
	if got.code != exitOK || !strings.Contains(got.out, "seed 42") || !strings.Contains(got.out, "one-per-slot") {
		t.Fatalf("got %+v", got)
	}
	if want := "measuring coverage (1 of 1)\n"; got.err != want {
		t.Errorf("got on stderr %q, want %q", got.err, want)
	}
	report, err := bench.ReadReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := report.Results[0]; len(report.Results) != 1 || r.Settings.Seed != 42 || r.Variant("one-per-slot").Counters[scenarios.SameSlot] != 1 {
		t.Errorf("got results %+v", report.Results)
	}
	if again := shardkit(t, t.Context(), "", "bench", "run", "coverage", "--seed", "42"); again.out != got.out {
		t.Errorf("the same seed printed another table:\n%s\n%s", got.out, again.out)
	}
}

func TestBenchWritesEveryFormat(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	got := shardkit(t, t.Context(), "", "bench", "run", "ring-nodes", "--duration", "200ms", "--rounds", "5", "--out", dir)
	if got.code != exitOK {
		t.Fatalf("got %+v", got)
	}
	for _, name := range []string{"report.json", "report.html", "report.md", "report.bench", "report.txt", "ring-nodes.hlog", "ring-nodes.1000.hgrm", "ring-nodes-percentiles.svg"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	finalError(t, shardkit(t, t.Context(), "", "bench", "run", "coverage", "--out", "/dev/null/out"), "/dev/null", "not a directory")
}

func TestBenchOutputErrors(t *testing.T) {
	t.Run("report", func(t *testing.T) {
		if _, err := os.Stat("/dev/full"); err != nil {
			t.Skip(err)
		}
		got := shardkit(t, t.Context(), "", "bench", "run", "coverage", "--json", "/dev/full")
		finalError(t, got, "/dev/full", "no space left")
		if !strings.Contains(got.out, "one-per-slot") {
			t.Errorf("the figures are lost: %q", got.out)
		}
	})
	t.Run("table", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "report.json")
		var stderr bytes.Buffer
		code := run(t.Context(), []string{"bench", "run", "coverage", "--json", file}, console{in: strings.NewReader(""), out: fullDisk{}, err: &stderr, plain: true})
		finalError(t, result{code, "", stderr.String()}, "no space left")
		if _, err := bench.ReadReport(file); err != nil {
			t.Errorf("the report is lost with the table: %v", err)
		}
	})
	t.Run("list", func(t *testing.T) {
		for _, args := range [][]string{{"bench", "list"}, {"bench", "list", "--json"}} {
			var stderr bytes.Buffer
			code := run(t.Context(), args, console{in: strings.NewReader(""), out: fullDisk{}, err: &stderr, plain: true})
			finalError(t, result{code, "", stderr.String()}, "no space left")
		}
	})
}

func TestBenchOnServersOfItsOwn(t *testing.T) {
	harnesstest.Shards(t, harness.Options{Shards: 1, Private: true}) // skips where there is no server
	t.Setenv("TMPDIR", t.TempDir())
	got := shardkit(t, t.Context(), "", "bench", "run", "intersect-100", "--duration", "50ms", "--rounds", "5", "--details")
	if got.code != exitOK {
		t.Fatalf("got %+v", got)
	}
	for _, want := range []string{"3 masters, process: ", "intersect-100: ", "shardkit", "fetch-both", "closed loop, 1 at a time", "p99.9"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("the output does not say %q:\n%s", want, got.out)
		}
	}
	noFolders(t)
}

func TestBenchOnAClusterOfTheUser(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true, Password: "secret"})
	t.Setenv("SHARDKIT_PASSWORD", "secret")
	file := filepath.Join(t.TempDir(), "report.json")
	got := shardkit(t, t.Context(), "", "bench", "run", "count", "--addr", c.Addrs()[0], "--rate", "200", "--duration", "1s", "--json", file)
	if got.code != exitOK || !strings.Contains(got.out, "cluster at "+c.Addrs()[0]) {
		t.Fatalf("got %+v", got)
	}
	report, err := bench.ReadReport(file)
	if err != nil {
		t.Fatal(err)
	}
	r := report.Results[0]
	if n := r.Variant("bare").Counters[bench.RedisCommands]; n != 1 || r.Is(bench.Partial) || r.Settings.Load.Rate != 200 {
		t.Errorf("got %v commands, load %+v, marks %v; want 1, a rate of 200, and nothing missing", n, r.Settings.Load, r.Marks)
	}
	noKeysLeft(t, c)
}

func noKeysLeft(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for _, n := range c.Nodes() {
		if v, err := n.Do(t.Context(), "DBSIZE"); err != nil || v != int64(0) {
			t.Errorf("%s: %v keys left, %v; want none", n, v, err)
		}
	}
}

func TestBenchInterrupted(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	file := filepath.Join(t.TempDir(), "report.json")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := &watched{when: "measuring intersect-100", then: func() { time.AfterFunc(3*time.Second, cancel) }}
	var stdout bytes.Buffer
	code := run(ctx, []string{"bench", "run", "coverage", "intersect-100", "delta", "--long", "--addr", c.Addrs()[0], "--json", file},
		console{in: strings.NewReader(""), out: &stdout, err: stderr, plain: true})
	finalError(t, result{code, stdout.String(), stderr.String()}, "interrupted after 1 of 3 parts", "some of intersect-100", file, "partial")

	report, err := bench.ReadReport(file)
	if err != nil || len(report.Results) != 3 {
		t.Fatalf("got %+v, %v; want the results of 3 parts", report, err)
	}
	for i, want := range []struct {
		part              string
		partial, measured bool
	}{{"coverage", false, true}, {"intersect-100", true, true}, {"delta", true, false}} {
		r := report.Results[i]
		measured := len(r.Variants) > 0 && (!want.partial || r.Variants[0].Response.Count > 0)
		if r.Scenario != want.part || r.Is(bench.Partial) != want.partial || measured != want.measured {
			t.Errorf("result %d: got %s, marks %v, measured %v; want %+v", i, r.Scenario, r.Marks, measured, want)
		}
	}
	if !strings.Contains(stdout.String(), "PARTIAL") || !strings.Contains(stdout.String(), "one-per-slot") {
		t.Errorf("the table does not show what was measured, or that something is missing:\n%s", stdout.String())
	}
	noKeysLeft(t, c)

	// An interrupt before anything was measured leaves an older report alone.
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	finalError(t, shardkit(t, ctx, "", "bench", "run", "delta", "--json", file), "interrupted before anything was measured")
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the older report changed: %v", err)
	}
}

// watched is a buffer that acts on what is written to it.
type watched struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	when string
	then func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.then != nil && strings.Contains(string(p), w.when) {
		w.then()
		w.then = nil
	}
	return w.buf.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func TestBenchPeerThatIsMissing(t *testing.T) {
	if os.Getenv("SHARDKIT_LONG") == "" {
		t.Skip("measures all else in every slot: SHARDKIT_LONG=1 runs it; bench/scenarios has TestPeersThatAreLeftOut")
	}
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	got := shardkit(t, t.Context(), "", "bench", "run", "publish-20-strings", "--duration", "100ms", "--rounds", "5",
		"--addr", c.Addrs()[0], "--peer", "other=/does/not/exist --flag")
	if got.code != exitOK || !strings.Contains(got.out, "PARTIAL: other is left out") || !strings.Contains(got.out, "no such file") {
		t.Errorf("got %+v, want the run to go on, and to say why other is missing", got)
	}
	noKeysLeft(t, c)
}

func TestBenchWatch(t *testing.T) {
	var b bytes.Buffer
	w := &benchWatch{con: console{err: &b}, terminal: true}
	w.update(scenarios.Progress{Part: "publish-20-strings", Number: 1, Of: 2, Doing: "shardkit", Done: 0.5, ETA: 12400 * time.Millisecond})
	w.update(scenarios.Progress{Part: "too soon to draw", Number: 1, Of: 2})
	w.drawn = time.Time{}
	w.update(scenarios.Progress{Part: "delta", Number: 2, Of: 2, Doing: "count", Done: 0.99})
	drawn := b.String()
	w.end()
	if cleared := b.String()[len(drawn):]; strings.TrimSpace(cleared) != "" || !strings.HasSuffix(cleared, "\r") {
		t.Errorf("in the end: got %q, want a line of spaces", cleared)
	}
	w.columns, w.drawn = 20, time.Time{}
	w.update(scenarios.Progress{Part: "delta", Number: 2, Of: 2, Doing: "count", Done: 0.99})
	if line := b.String()[strings.LastIndex(b.String(), "\r")+1:]; strings.TrimRight(line, " ") != "  [################"[:19] {
		t.Errorf("on 20 columns: got %q, want 19 of the line", line)
	}

	first := "  [###############...............] publish-20-strings, 1 of 2: shardkit, about 12s left"
	second := "  [#############################.] delta, 2 of 2: count"
	want := "\r" + first + "\r" + second + strings.Repeat(" ", len(first)-len(second))
	if drawn != want {
		t.Errorf("got %q, want %q", drawn, want)
	}
}
