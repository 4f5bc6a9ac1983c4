package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// sampleReport has every field set, to numbers that mean nothing.
func sampleReport() *Report {
	at := time.Date(2025, 6, 1, 12, 0, 0, 123_456_789, time.UTC)
	us := time.Microsecond
	l := Latency{Count: 45_000, OutOfRange: 1, Mean: 31_250.5, Min: 18 * us, P50: 26 * us, P90: 48_300, P99: 187 * us, P999: 1230 * us, Max: 998_700 * us, HDR: "HISTFAAAAA=="}
	plain := l
	plain.HDR = ""
	service := l
	service.Mean, service.P99, service.P999, service.Max = 28_000, 110*us, 900*us, 3100*us
	variant := func(name string, twin bool) VariantResult {
		return VariantResult{
			Name: name, Twin: twin, Rate: 1500.25, Response: l, Service: &service,
			Kinds:  []KindResult{{Name: "get", Response: l, Service: &service}, {Name: "set", Response: l, Service: &service}},
			Errors: 3, Failures: []Failures{{Kind: "timeout", Count: 3, Texts: []string{"read: i/o timeout"}}},
			Counters: map[string]float64{AllocsPerOp: 12, BytesPerOp: 1024.5, RedisCommands: 1},
		}
	}
	ratio := Comparison{Variant: "pipelined", Baseline: "plain", Metric: "service_p50", Ratio: 1.52, Low: 1.48, High: 1.561, Floor: 0.021, Rounds: 9, Verdict: Slower}
	floor := Comparison{Variant: "plain'", Baseline: "plain", Metric: "service_p50", Ratio: 1.004, Low: 0.99, High: 1.021, Floor: 0.021, Rounds: 9, Verdict: Same, Twin: true}
	mean := ratio
	mean.Metric = "service_mean"
	return &Report{
		Schema: SchemaVersion, Date: at.Truncate(time.Second),
		Machine: Machine{Go: "go1.26.0", OS: "linux", Arch: "amd64", CPU: "Example CPU", CPUs: 2, GOMAXPROCS: 2},
		Servers: "3 masters, redis-server 7.0.15", Modules: map[string]string{"github.com/redis/go-redis/v9": "v9.23.0"},
		Results: []*Result{{
			Scenario: "get", Doc: "one key, 64 bytes", Started: at, Measured: at.Add(time.Second), Ended: at.Add(31 * time.Second),
			Settings: Settings{
				Load:     Load{Mode: Open, Rate: 4500, Workers: 64, Duration: 30 * time.Second, Ops: 200_000, WarmUp: time.Second, Drain: 10 * time.Second},
				Interval: time.Second, MaxLatency: 10 * time.Minute, Seed: 42, Rounds: 9, SliceOps: 40, Confidence: 0.99, Threshold: 0.1,
			},
			Variants:    []VariantResult{variant("plain", false), variant("pipelined", false), variant("plain'", true)},
			Comparisons: []Comparison{floor, ratio, mean},
			Generator:   &Generator{Intended: 135_000, Unfinished: 2, MaxBacklog: 4500, Lateness: plain},
			Intervals:   []Interval{{Variant: "plain", Kind: "get", Start: at.Add(time.Second), End: at.Add(2 * time.Second), Response: plain}},
			Events:      []Event{{At: at.Add(11 * time.Second), Text: "kill b"}},
			Marks:       []Mark{{Kind: Invalid, Reason: "the generator itself was late"}, {Kind: Partial, Reason: "interrupted\nafter 30s"}},
		}},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; if that is meant, run go test -update (and think of SchemaVersion). Got:\n%s", file, got)
	}
}

// Other programs read these names.
func TestReportShape(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	want := sampleReport()
	if err := want.WriteJSON(file); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", b)
	got, err := ReadReport(file)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read back:\n%+v\nwant:\n%+v", got, want)
	}
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	if err := sampleReport().WriteTable(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "table.txt", b.Bytes())

	full := errors.New("no space left on device")
	if err := sampleReport().WriteTable(failingWriter{full}); !errors.Is(err, full) {
		t.Errorf("full disk: got %v", err)
	}
}

func TestShortNumbers(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ns", 942: "942ns", 1000: "1µs", 12_345: "12.3µs", 123_456: "123µs", 1_234_567: "1.23ms",
		999_700 * time.Microsecond: "1000ms", 59_700 * time.Millisecond: "59.7s", 600 * time.Second: "600s",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("%d ns: got %q, want %q", d, got, want)
		}
	}
	for f, want := range map[float64]string{0: "0", 12: "12", 1.2: "1.20", 0.12345: "0.123", 1234567: "1234567", 1234.56: "1235", 12.345: "12.3"} {
		if got := significant(f); got != want {
			t.Errorf("%v: got %q, want %q", f, got, want)
		}
	}
}

func TestNewReportKnowsTheMachine(t *testing.T) {
	r := NewReport(&Result{Scenario: "a"}, &Result{Scenario: "b"})
	if r.Schema != 1 || len(r.Results) != 2 || r.Date.IsZero() || !strings.HasPrefix(r.Machine.Go, "go") && !strings.HasPrefix(r.Machine.Go, "devel") || r.Machine.GOMAXPROCS < 1 {
		t.Errorf("got %+v", r)
	}
}

func TestWriteJSONErrors(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "file")
	if err := os.WriteFile(plain, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		file string
		is   error
	}{
		"no such folder":        {filepath.Join(dir, "missing", "report.json"), os.ErrNotExist},
		"a file as a folder":    {filepath.Join(plain, "report.json"), syscall.ENOTDIR},
		"a folder":              {dir, syscall.EISDIR},
		"a device that is full": {"/dev/full", syscall.ENOSPC},
	} {
		if _, err := os.Stat(test.file); name == "a device that is full" && err != nil {
			continue
		}
		err := sampleReport().WriteJSON(test.file)
		if !errors.Is(err, test.is) {
			t.Errorf("%s: got %v, want %v", name, err, test.is)
			continue
		}
		if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, "bench: cannot write "+test.file+": ") || strings.Count(s, "/") > strings.Count(test.file, "/") {
			t.Errorf("%s: got %q, want one line that names the file alone", name, s)
		}
	}

	// A disk that fills half-way leaves the old file, and nothing else.
	err := writeFile(plain, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half of it")
		return &os.PathError{Op: "write", Path: "some temporary file", Err: syscall.ENOSPC}
	})
	if want := "bench: cannot write " + plain + ": no space left on device: free some space or choose another path"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
	if b, err := os.ReadFile(plain); string(b) != "old" || err != nil {
		t.Errorf("the old file holds %q, %v", b, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteJSONReplacesThroughALink(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	if err := sampleReport().WriteJSON(link); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadReport(target); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

func TestReadReportErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	for content, want := range map[string]string{
		`{"schema": 1, "resul`: "is not a report, was it edited or cut off?",
		`{"a": 1}`:             "it has no schema number",
		`{"schema": 99}`:       "has schema 99, this program reads up to 1: update it",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadReport(file); err == nil || !strings.HasPrefix(err.Error(), "bench: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", content, err, want)
		}
	}
	if _, err := ReadReport(file + ".missing"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: got %v", err)
	}
}

// What a run returns survives the file, but for the histograms of intervals, which the interval log has.
func TestResultSurvivesJSON(t *testing.T) {
	s := Scenario{Name: "test", Variants: []Variant{Func("a", busy(100)), Func("b", busy(100))}}
	r := mustRun(t, s, &Options{Load: Load{Mode: Open, Rate: 2000, Duration: 200 * time.Millisecond}})
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteHDRLog(io.Discard); err != nil {
		t.Error(err)
	}
	if err := back.WriteHDRLog(io.Discard); err == nil || !strings.Contains(err.Error(), "has no histogram") {
		t.Errorf("the interval log of a report: got %v, want an error that says so", err)
	}
	for i := range r.Intervals {
		r.Intervals[i].h = nil
	}
	if !reflect.DeepEqual(r, &back) {
		t.Errorf("read back:\n%+v\nwant:\n%+v", &back, r)
	}
	h, err := back.Variants[0].Response.Histogram()
	if err != nil || h.TotalCount() != back.Variants[0].Response.Count {
		t.Errorf("histogram: got %v, %v", h, err)
	}
}

func TestModuleVersions(t *testing.T) {
	info := &debug.BuildInfo{
		Main: debug.Module{Path: "example.com/mine", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.com/client", Version: "v1.2.3"},
			{Path: "example.com/beside", Version: "v0.0.0", Replace: &debug.Module{Path: "../beside"}},
		},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	}
	want := map[string]string{"example.com/client": "v1.2.3", "example.com/mine": "(devel) abc+dirty"}
	if got := modulesOf(info); !maps.Equal(got, want) {
		t.Errorf("built from a commit: got %v, want %v", got, want)
	}
	info.Main.Version = "v0.1.0"
	want["example.com/mine"] = "v0.1.0"
	if got := modulesOf(info); !maps.Equal(got, want) {
		t.Errorf("installed by version: got %v, want %v", got, want)
	}
}
