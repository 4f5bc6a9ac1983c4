package bench

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// WriteTable writes every result's table.
func (r *Report) WriteTable(w io.Writer) error {
	if _, err := io.WriteString(w, r.Where()+"\n"); err != nil {
		return err
	}
	for _, res := range r.Results {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := res.WriteTable(w); err != nil {
			return err
		}
	}
	return nil
}

// WriteTable writes the result for a terminal: its tables, then errors and marks.
func (r *Result) WriteTable(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.Scenario, r.Headline())
	for i, t := range r.Tables() {
		if i > 0 {
			b.WriteString("\n")
		}
		if t.Title != "" {
			b.WriteString(t.Title + "\n")
		}
		t.WriteText(&b)
	}
	for _, n := range r.Notes() {
		b.WriteString("\n" + n)
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// Headline tells in one line how the result was measured.
func (r *Result) Headline() string {
	if len(r.latencies().Rows) == 0 {
		return r.Doc // computed, or never begun
	}
	l := r.Settings.Load
	s := fmt.Sprintf("closed loop, %d at a time", l.Workers)
	if l.Mode == Open {
		s = fmt.Sprintf("open loop, %s ops/s, up to %d at a time, latency from the intended start", significant(l.Rate), l.Workers)
	}
	s += fmt.Sprintf(", %v, seed %d", r.Ended.Sub(r.Measured).Round(10*time.Millisecond), r.Settings.Seed)
	if g := r.Generator; g != nil {
		s += fmt.Sprintf("; generator late by p50 %s, p99 %s", shortDuration(g.Lateness.P50), shortDuration(g.Lateness.P99))
		if g.RealTime {
			s += ", in a real-time process"
		}
	}
	return s
}

// WriteText writes the table for a terminal; it aligns numbers to the right and all else to the left.
func (t Table) WriteText(b *strings.Builder) {
	width := make([]int, len(t.Head))
	rows := append([][]string{t.Head}, t.Rows...)
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			gap := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if t.IsText(i) {
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
