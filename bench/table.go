package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// WriteTable writes every result's table.
func (r *Report) WriteTable(w io.Writer) error {
	for i, res := range r.Results {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := res.WriteTable(w); err != nil {
			return err
		}
	}
	return nil
}

// WriteTable writes the result for a terminal: a line per variant, and per kind where there are several, then ratios,
// counters per operation, errors and marks.
func (r *Result) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.Scenario, r.headline())

	t := table{{"", "ops", "errors", "ops/s", "mean", "p50", "p90", "p99", "p99.9", "max"}}
	for _, v := range r.Variants {
		t = append(t, latencyRow(v.Name, v.Response, strconv.FormatInt(v.Errors, 10), significant(v.Rate)))
		if len(v.Kinds) > 1 {
			for _, k := range v.Kinds {
				t = append(t, latencyRow("  "+k.Name, k.Response, "", ""))
			}
		}
		if v.Service != nil {
			t = append(t, latencyRow("  service time", *v.Service, "", ""))
		}
	}
	t.write(&b)

	if len(r.Comparisons) > 0 {
		fmt.Fprintf(&b, "\nratio to %s, %s %% interval\n", r.Comparisons[0].Baseline, significant(100*r.Settings.Confidence))
		t = table{{"", "metric", "ratio", "from", "to", "verdict"}}
		for _, c := range r.Comparisons {
			if strings.HasSuffix(c.Metric, "_mean") {
				continue // a few outliers move it; the JSON has it
			}
			verdict := string(c.Verdict)
			if c.Twin {
				verdict = fmt.Sprintf("noise floor %.1f %%", 100*c.Floor)
			}
			t = append(t, []string{c.Variant, c.Metric, fixed(c.Ratio), fixed(c.Low), fixed(c.High), verdict})
		}
		t.write(&b)
	}
	r.writeCounters(&b)
	for _, v := range r.Variants {
		for _, f := range v.Failures {
			fmt.Fprintf(&b, "\n%s: %d x %s: %s", v.Name, f.Count, f.Kind, oneLine(strings.Join(f.Texts, " | ")))
		}
	}
	for _, m := range r.Marks {
		fmt.Fprintf(&b, "\n%s: %s", strings.ToUpper(string(m.Kind)), oneLine(m.Reason))
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

func (r *Result) headline() string {
	l := r.Settings.Load
	s := fmt.Sprintf("closed loop, %d at a time", l.Workers)
	if l.Mode == Open {
		s = fmt.Sprintf("open loop, %s ops/s, up to %d at a time, latency from the intended start", significant(l.Rate), l.Workers)
	}
	s += fmt.Sprintf(", %v, seed %d", r.Ended.Sub(r.Measured).Round(10*time.Millisecond), r.Settings.Seed)
	if g := r.Generator; g != nil {
		s += fmt.Sprintf("; generator late by p50 %s, p99 %s", shortDuration(g.Lateness.P50), shortDuration(g.Lateness.P99))
	}
	return s
}

func (r *Result) writeCounters(b *strings.Builder) {
	names := map[string]bool{}
	for _, v := range r.Variants {
		for name := range v.Counters {
			names[name] = true
		}
	}
	if len(names) == 0 {
		return
	}
	sorted := slices.Sorted(maps.Keys(names))
	t := table{append([]string{"per operation"}, sorted...)}
	for _, v := range r.Variants {
		row := []string{v.Name}
		for _, name := range sorted {
			cell := "-"
			if n, ok := v.Counters[name]; ok {
				cell = significant(n)
			}
			row = append(row, cell)
		}
		t = append(t, row)
	}
	b.WriteString("\n")
	t.write(b)
}

func latencyRow(name string, l Latency, errs, rate string) []string {
	return []string{
		name, strconv.FormatInt(l.Count+l.OutOfRange, 10), errs, rate, shortDuration(time.Duration(l.Mean)),
		shortDuration(l.P50), shortDuration(l.P90), shortDuration(l.P99), shortDuration(l.P999), shortDuration(l.Max),
	}
}

// table is rows of cells; the first row is the head.
type table [][]string

// write aligns the first column and text columns to the left, numbers to the right.
func (t table) write(b *strings.Builder) {
	width := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if left := i == 0 || t[0][i] == "metric" || t[0][i] == "verdict"; left {
				line.WriteString(cell + gap)
			} else {
				line.WriteString(gap + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// shortDuration keeps 3 digits: 942ns, 12.3µs, 1.23ms, 59.7s.
func shortDuration(d time.Duration) string {
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%dns", d.Nanoseconds())
	case d < time.Millisecond:
		return significant(float64(d)/1e3) + "µs"
	case d < time.Second:
		return significant(float64(d)/1e6) + "ms"
	}
	return significant(d.Seconds()) + "s"
}

// significant keeps 3 digits, and all digits of whole numbers.
func significant(f float64) string {
	switch {
	case f == float64(int64(f)) || f >= 100 || f <= -100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	case f >= 10:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case f >= 1:
		return strconv.FormatFloat(f, 'f', 2, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

func fixed(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
