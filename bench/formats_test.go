package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := sampleReport().WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.md", b.Bytes())
}

func TestGoBench(t *testing.T) {
	var b bytes.Buffer
	if err := sampleReport().WriteGoBench(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.bench", b.Bytes())
}

// What a server says must not become mark-up, nor another row.
func TestMarkdownIsTextOnly(t *testing.T) {
	r := sampleReport()
	r.Results[0].Marks = []Mark{{Partial, "a | b\n| c | <img src=x> **x** @somebody [y](z)"}}
	var b bytes.Buffer
	if err := r.WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<img", "**x", "@somebody", "\n| c", " [y"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("got %q in\n%s", bad, b.String())
		}
	}
}

// measured is a report of a short run.
func measured(t *testing.T) *Report {
	s := Scenario{Name: "test", Variants: []Variant{Func("a", busy(100)), Func("b", busy(300))}}
	return NewReport(mustRun(t, s, &Options{Load: Load{Duration: 300 * time.Millisecond}, Rounds: 5, Interval: 100 * time.Millisecond}))
}

// The figures of every format are those of the JSON.
func TestFormatsAgree(t *testing.T) {
	live := measured(t)
	file := filepath.Join(t.TempDir(), "report.json")
	if err := live.WriteJSON(file); err != nil {
		t.Fatal(err)
	}
	report, err := ReadReport(file)
	if err != nil {
		t.Fatal(err)
	}
	res := report.Results[0]

	var text, markdown, lines, log bytes.Buffer
	for _, err := range []error{res.WriteTable(&text), report.WriteMarkdown(&markdown), report.WriteGoBench(&lines), live.Results[0].WriteHDRLog(&log)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range res.Variants {
		row := fmt.Sprintf("%s %d %d %s %s %s %s %s", v.Name, v.Response.Count, v.Errors, significant(v.Rate),
			shortDuration(time.Duration(v.Response.Mean)), shortDuration(v.Response.P50), shortDuration(v.Response.P90), shortDuration(v.Response.P99))
		if got := strings.Join(strings.Fields(text.String()), " "); !strings.Contains(got, row) {
			t.Errorf("the table does not hold %q:\n%s", row, text.String())
		}
		if cells := "| " + strings.ReplaceAll(row, " ", " | ") + " |"; !strings.Contains(markdown.String(), cells) {
			t.Errorf("the Markdown does not hold %q:\n%s", cells, markdown.String())
		}
		checkHGRM(t, res, v)
		checkLog(t, log.Bytes(), v)
	}
	n := 0
	for _, i := range res.Intervals {
		if i.Response.Count == 0 {
			continue
		}
		n++
		if want := fmt.Sprintf("\t%d\t%.0f ns/op\t%d p50-ns\t%d p99-ns\t", i.Response.Count, i.Response.Mean, i.Response.P50, i.Response.P99); !strings.Contains(lines.String(), want) {
			t.Errorf("the benchmark lines do not hold %q:\n%s", want, lines.String())
		}
	}
	if got := strings.Count(lines.String(), "\nBenchmarkTest/"); got != n || n < 6 {
		t.Errorf("got %d benchmark lines, want one for each of %d intervals", got, n)
	}
}

func checkHGRM(t *testing.T, res *Result, v VariantResult) {
	t.Helper()
	var b bytes.Buffer
	if err := res.WriteHGRM(&b, v.Name); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("Total count    = %12d", v.Response.Count); !strings.Contains(b.String(), want) {
		t.Errorf("%s: the percentile table does not say %q:\n%s", v.Name, want, b.String())
	}
	for line := range strings.Lines(b.String()) {
		f := strings.Fields(line)
		if len(f) < 2 || f[1] != "0.500000" {
			continue
		}
		if got, err := strconv.ParseFloat(f[0], 64); err != nil || time.Duration(got*hgrmScale+0.5) != v.Response.P50 {
			t.Errorf("%s: the percentile table has p50 %s us, want %v", v.Name, f[0], v.Response.P50)
		}
		return
	}
	t.Errorf("%s: no p50 in the percentile table:\n%s", v.Name, b.String())
}

func checkLog(t *testing.T, log []byte, v VariantResult) {
	t.Helper()
	intervals, err := ReadHDRLog(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	whole := hdrhistogram.New(1, int64(10*time.Minute), significantDigits)
	for _, i := range intervals {
		if i.Tag == v.Name+"/op" {
			whole.Merge(i.Histogram)
		}
	}
	if whole.TotalCount() != v.Response.Count {
		t.Errorf("%s: the interval log holds %d operations, want %d", v.Name, whole.TotalCount(), v.Response.Count)
	}
	for percent, want := range map[float64]time.Duration{50: v.Response.P50, 90: v.Response.P90, 99: v.Response.P99} {
		if got := min(time.Duration(whole.ValueAtPercentile(percent)), v.Response.Max); got != want {
			t.Errorf("%s: p%v of the interval log is %v, want %v", v.Name, percent, got, want)
		}
	}
}

// A run that was cut short says so in every format.
func TestPartialEverywhere(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	op := func(context.Context) error {
		if n++; n == 2000 {
			cancel()
		}
		return nil
	}
	res, err := Run(ctx, Scenario{Name: "test", Variants: []Variant{Func("a", op)}}, &Options{Load: Load{SkipWarmUp: true}})
	if !errors.Is(err, ErrInterrupted) {
		t.Fatalf("got %v", err)
	}
	report := NewReport(res)
	for name, write := range map[string]func(io.Writer) error{
		"table": report.WriteTable, "markdown": report.WriteMarkdown, "benchmark lines": report.WriteGoBench,
		"interval log": res.WriteHDRLog, "percentile table": func(w io.Writer) error { return res.WriteHGRM(w, "a") },
		"json": func(w io.Writer) error { return json.NewEncoder(w).Encode(report) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(strings.ToLower(b.String()), "partial") || !strings.Contains(b.String(), "interrupted after") {
			t.Errorf("the %s does not say that it is partial, and why:\n%s", name, b.String())
		}
	}
}

func TestFormatsOnAFullDisk(t *testing.T) {
	full := errors.New("no space left on device")
	report := measured(t)
	for name, write := range map[string]func(io.Writer) error{
		"markdown": report.WriteMarkdown, "benchmark lines": report.WriteGoBench, "interval log": report.Results[0].WriteHDRLog,
		"percentile table": func(w io.Writer) error { return report.Results[0].WriteHGRM(w, "a") },
	} {
		if err := write(failingWriter{full}); !errors.Is(err, full) {
			t.Errorf("%s: got %v, want %v", name, err, full)
		}
	}
}
