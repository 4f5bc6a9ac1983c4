package bench

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Table is a part of a result as it is shown, in a terminal, in Markdown or in HTML alike.
type Table struct {
	Title string // may be empty
	Head  []string
	Rows  [][]string // each as long as Head; a first cell that begins with spaces belongs to the row above
}

// IsText reports whether a column holds words, to be aligned to the left, and not numbers.
func (t Table) IsText(column int) bool {
	return column == 0 || t.Head[column] == "metric" || t.Head[column] == "verdict"
}

// Tables returns what the result has to show: latencies with a row for each variant, and for each kind where there are
// several; ratios; counters per operation. Numbers have 3 digits.
func (r *Result) Tables() []Table {
	var all []Table
	for _, t := range []Table{r.latencies(), r.ratios(), r.perOperation()} {
		if len(t.Rows) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// Notes returns what is to be said of the result beside its figures, in a line each: errors of operations, then marks.
func (r *Result) Notes() []string {
	var all []string
	for _, v := range r.Variants {
		for _, f := range v.Failures {
			all = append(all, fmt.Sprintf("%s: %d x %s: %s", v.Name, f.Count, f.Kind, oneLine(strings.Join(f.Texts, " | "))))
		}
	}
	for _, m := range r.Marks {
		all = append(all, m.String())
	}
	return all
}

func (r *Result) latencies() Table {
	t := Table{Head: []string{"", "ops", "errors", "ops/s", "mean", "p50", "p90", "p99", "p99.9", "max"}}
	if !slices.ContainsFunc(r.Variants, VariantResult.timed) {
		return t
	}
	for _, v := range r.Variants {
		t.Rows = append(t.Rows, latencyRow(v.Name, v.Response, strconv.FormatInt(v.Errors, 10), significant(v.Rate)))
		if len(v.Kinds) > 1 {
			for _, k := range v.Kinds {
				t.Rows = append(t.Rows, latencyRow("  "+k.Name, k.Response, "", ""))
			}
		}
		if v.Service != nil {
			t.Rows = append(t.Rows, latencyRow("  service time", *v.Service, "", ""))
		}
	}
	return t
}

// timed is false for what was computed or counted, and no operation put under load.
func (v VariantResult) timed() bool { return v.Response.Count+v.Response.OutOfRange+v.Errors > 0 }

func latencyRow(name string, l Latency, errs, rate string) []string {
	return []string{
		name, strconv.FormatInt(l.Count+l.OutOfRange, 10), errs, rate, shortDuration(time.Duration(l.Mean)),
		shortDuration(l.P50), shortDuration(l.P90), shortDuration(l.P99), shortDuration(l.P999), shortDuration(l.Max),
	}
}

func (r *Result) ratios() Table {
	if len(r.Comparisons) == 0 {
		return Table{}
	}
	t := Table{
		Title: fmt.Sprintf("ratio to %s, %s %% interval", r.Comparisons[0].Baseline, significant(100*r.Settings.Confidence)),
		Head:  []string{"", "metric", "ratio", "from", "to", "verdict"},
	}
	for _, c := range r.Comparisons {
		if strings.HasSuffix(c.Metric, "_mean") {
			continue // a few outliers move it; the JSON has it
		}
		verdict := string(c.Verdict)
		if c.Twin {
			verdict = fmt.Sprintf("noise floor %.1f %%", 100*c.Floor)
		}
		t.Rows = append(t.Rows, []string{c.Variant, c.Metric, fixed(c.Ratio), fixed(c.Low), fixed(c.High), verdict})
	}
	return t
}

func (r *Result) perOperation() Table {
	names := map[string]bool{}
	for _, v := range r.Variants {
		for name := range v.Counters {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return Table{}
	}
	sorted := slices.Sorted(maps.Keys(names))
	t := Table{Head: append([]string{"per operation"}, sorted...)}
	for _, v := range r.Variants {
		row := []string{v.Name}
		for _, name := range sorted {
			cell := "-"
			if n, ok := v.Counters[name]; ok {
				cell = significant(n)
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
