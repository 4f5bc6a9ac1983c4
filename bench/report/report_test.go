package report

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/bench"
)

// measured is a short run of two variants, with a fault.
func measured(t *testing.T) *bench.Report {
	t.Helper()
	spin := func(n int) bench.Op {
		return func(context.Context) error {
			for start := time.Now(); time.Since(start) < time.Duration(n)*time.Microsecond; {
			}
			return nil
		}
	}
	s := bench.Scenario{Name: "spin", Doc: "one <b> thing & another", Variants: []bench.Variant{bench.Func("a", spin(2)), bench.Func("b", spin(6))}}
	res, err := bench.Run(t.Context(), s, &bench.Options{Load: bench.Load{Duration: 400 * time.Millisecond}, Rounds: 5, Interval: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	res.Events = []bench.Event{{At: res.Measured.Add(200 * time.Millisecond), Text: "kill <b>"}}
	return bench.NewReport(res)
}

func plotsOf(t *testing.T, r *bench.Result) map[string]string {
	t.Helper()
	percentiles, err := Percentiles(r)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"percentiles": string(percentiles), "timeline": string(Timeline(r)), "ratios": string(Ratios(r))}
}

func TestPlotsAreWellFormed(t *testing.T) {
	for name, svg := range plotsOf(t, measured(t).Results[0]) {
		d := xml.NewDecoder(strings.NewReader(svg))
		elements := 0
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, svg)
			}
			if _, ok := token.(xml.StartElement); ok {
				elements++
			}
		}
		if elements < 15 || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("%s: %d elements in\n%s", name, elements, svg)
		}
		if !strings.Contains(svg, "prefers-color-scheme:dark") {
			t.Errorf("%s has no colours for the dark", name)
		}
	}
}

func TestTimelineMarksFaults(t *testing.T) {
	res := measured(t).Results[0]
	svg := string(Timeline(res))
	if strings.Count(svg, `class="fault"`) != 1 || !strings.Contains(svg, "kill &lt;b&gt;") {
		t.Errorf("the fault is not marked in\n%s", svg)
	}
}

func TestNothingToPlot(t *testing.T) {
	empty := &bench.Result{Scenario: "computed", Variants: []bench.VariantResult{{Name: "a", Counters: map[string]float64{"x": 1}}}}
	for name, svg := range plotsOf(t, empty) {
		if svg != "" {
			t.Errorf("%s: got\n%s", name, svg)
		}
	}
}

func TestAHistogramThatDoesNotDecode(t *testing.T) {
	r := measured(t)
	r.Results[0].Variants[0].Response.HDR = "nonsense"
	if _, err := Percentiles(r.Results[0]); err == nil || !strings.Contains(err.Error(), "was the report edited?") {
		t.Errorf("got %v", err)
	}
	if err := WriteHTML(io.Discard, r); err == nil {
		t.Error("the page hides that a histogram is broken")
	}
}

// Every cell of the tables that the terminal shows is in the page, and the page needs no other file.
func TestHTMLHasTheFigures(t *testing.T) {
	r := measured(t)
	var b bytes.Buffer
	if err := WriteHTML(&b, r); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, table := range r.Results[0].Tables() {
		for _, row := range table.Rows {
			at := 0
			for _, cell := range row {
				found := strings.Index(text[at:], ">"+html.EscapeString(cell)+"</t")
				if found < 0 {
					t.Fatalf("the page does not hold %q of row %v in its order", cell, row)
				}
				at += found
			}
		}
	}
	for _, bad := range []string{"<b>", "<script", "src=", "<link", "@import", "url("} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
}

func TestPartialInEveryFile(t *testing.T) {
	r := measured(t)
	r.Results[0].Marks = []bench.Mark{{Kind: bench.Partial, Reason: "interrupted after 3s"}}
	dir := filepath.Join(t.TempDir(), "out")
	files, err := WriteDir(dir, r)
	if err != nil {
		t.Fatal(err)
	}
	want := "report.json report.txt report.md report.bench report.html spin.hlog spin.a.hgrm spin.b.hgrm spin-ratios.svg spin-percentiles.svg spin-timeline.svg"
	if got := strings.Join(files, " "); got != want {
		t.Errorf("got files %s\nwant %s", got, want)
	}
	for _, name := range files {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.ToLower(string(b)), "partial") {
			t.Errorf("%s does not say that the result is partial", name)
		}
	}

	// A report from a file has no histograms of intervals, and everything else.
	again, err := bench.ReadReport(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if files, err = WriteDir(t.TempDir(), again); err != nil || strings.Join(files, " ") != strings.ReplaceAll(want, " spin.hlog", "") {
		t.Errorf("from a file: got %v, %v", files, err)
	}
}

func TestWriteDirErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteDir(file, measured(t)); err == nil || !strings.HasPrefix(err.Error(), "bench: cannot make the folder") {
		t.Errorf("a file for a folder: got %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "report.md"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteDir(dir, measured(t)); err == nil || !strings.HasPrefix(err.Error(), "bench: cannot write the report") {
		t.Errorf("a folder for a file: got %v", err)
	}
}
