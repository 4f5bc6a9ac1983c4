package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// binary is a file that is the command, as long as the test runs: its own.
func binary(t *testing.T) string {
	t.Helper()
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(asCommand, "1")
	return bin
}

func TestBenchGate(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true, Password: "secret"})
	t.Setenv("SHARDKIT_PASSWORD", "secret")
	bin, dir := binary(t), t.TempDir()
	comment := filepath.Join(dir, "comment.md")
	got := shardkit(t, t.Context(), "", "bench", "gate", "--old", bin, "--new", bin, "--addr", c.Addrs()[0],
		"--duration", "50ms", "--rounds", "5", "--markdown", comment, "--out", dir, "intersect-100", "ring-nodes")
	// How noisy the machine is decides on the outcome; what is exact is the same.
	if got.code == exitFailed || !strings.Contains(got.out, "redis_commands") || !strings.Contains(got.out, "noise") || !strings.Contains(got.out, "ring-nodes") {
		t.Errorf("got %+v", got)
	}
	text, err := os.ReadFile(comment)
	if err != nil || !strings.Contains(string(text), "| intersect-100 | redis_commands | 5 | 5 | 1.000 |") {
		t.Errorf("the comment: %v\n%s", err, text)
	}
	r, err := bench.ReadReport(filepath.Join(dir, "report.json"))
	if err != nil || r.Results[0].Variant("old'") == nil {
		t.Errorf("the report: %+v, %v", r, err)
	}
	noKeysLeft(t, c)

	got = shardkit(t, t.Context(), "", "bench", "gate", "--old", "/bin/false", "--new", bin, "--addr", c.Addrs()[0], "intersect-100")
	if got.code != exitInconclusive || !strings.Contains(got.err, "shardkit: inconclusive: intersect-100: ") || !strings.Contains(got.err, "/bin/false has ended") {
		t.Errorf("a build that does nothing: got %+v", got)
	}
}

func TestBenchGateBadInput(t *testing.T) {
	exe := os.Args[0]
	for _, tc := range []struct {
		name string
		args []string
		word string
	}{
		{"no builds", nil, "--new"},
		{"no such build", []string{"--old", "/does/not/exist", "--new", exe}, "/does/not/exist"},
		{"nothing to compare", []string{"--old", exe, "--new", exe, "coverage"}, "coverage cannot compare builds"},
		{"unknown", []string{"--old", exe, "--new", exe, "frobnicate"}, "frobnicate"},
		{"few rounds", []string{"--old", exe, "--new", exe, "--rounds", "2"}, "5 to 1000"},
		{"no time", []string{"--old", exe, "--new", exe, "--duration", "0s"}, "--duration"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			oneError(t, shardkit(t, t.Context(), "", append([]string{"bench", "gate"}, tc.args...)...), exitUsage, tc.word)
		})
	}
}

func TestBenchCompare(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, commands float64) string {
		file := filepath.Join(dir, name)
		r := bench.NewReport(&bench.Result{Scenario: "get", Doc: "a key", Variants: []bench.VariantResult{
			{Name: "bare", Counters: map[string]float64{bench.RedisCommands: 1}},
			{Name: "shardkit", Counters: map[string]float64{bench.RedisCommands: commands}},
		}})
		if err := r.WriteJSON(file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	old, same, more := write("old.json", 5), write("same.json", 5), write("more.json", 6)
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{old, same}, exitOK, "pass"},
		{[]string{old, more}, exitFailed, "regression: get/shardkit redis_commands"},
		{[]string{more, old}, exitOK, "less"},
		{[]string{old, broken}, exitInconclusive, "was it edited or cut off?"},
		{[]string{old, filepath.Join(dir, "missing.json")}, exitUsage, "missing.json"},
	} {
		got := shardkit(t, t.Context(), "", append([]string{"bench", "compare", "--markdown", filepath.Join(dir, "comment.md")}, tc.args...)...)
		if got.code != tc.code || !strings.Contains(got.out+got.err, tc.says) {
			t.Errorf("%v: got %+v, want exit %d and %q", tc.args, got, tc.code, tc.says)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "comment.md")); err != nil || !strings.HasPrefix(string(text), "**pass**") {
		t.Errorf("the comment: %v\n%s", err, text)
	}
}
