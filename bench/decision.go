package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Outcome is what a gate or a comparison of reports comes to.
type Outcome string

const (
	// Pass: nothing that is gated is worse.
	Pass Outcome = "pass"

	// Regression: something is.
	Regression Outcome = "regression"

	// Inconclusive: no regression was found, and it cannot be said that there is none.
	Inconclusive Outcome = "inconclusive"
)

// Finding is one figure of two builds, or of two reports.
type Finding struct {
	Scenario string
	Variant  string // empty where builds are compared
	Metric   string // as in Comparison, or a counter's name; "ratio " before it for the ratio to the baseline

	// Old and New are nanoseconds, counts per operation or ratios. Ratio is new to old, Low and High are its interval;
	// both zero for counters, which have none.
	Old, New         float64
	Ratio, Low, High float64

	// Limit is the ratio from which on it is a regression.
	Limit float64

	// Floor is what noise alone does.
	Floor float64

	Verdict Verdict
	Gated   bool
}

// Decision is an outcome, with what it is based on.
type Decision struct {
	Outcome  Outcome
	Findings []Finding
	Reasons  []string // why it is inconclusive, and what else is to be said
}

// settle derives the outcome.
func (d *Decision) settle() *Decision {
	gated := func(v Verdict) bool {
		return slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Gated && f.Verdict == v })
	}
	switch {
	case gated(Slower):
		d.Outcome = Regression
	case gated(Unclear), len(d.Reasons) > 0:
		d.Outcome = Inconclusive
	default:
		d.Outcome = Pass
	}
	return d
}

// Add takes in another decision: the outcome is that of the worse one.
func (d *Decision) Add(other *Decision) {
	d.Findings = append(d.Findings, other.Findings...)
	d.Reasons = append(d.Reasons, other.Reasons...)
	for _, o := range []Outcome{Regression, Inconclusive, Pass} {
		if d.Outcome == o || other.Outcome == o {
			d.Outcome = o
			return
		}
	}
}

// Table shows the findings, those that decide first.
func (d *Decision) Table() Table {
	t := Table{Head: []string{"", "metric", "old", "new", "ratio", "from", "to", "limit", "noise", "verdict"}}
	for _, gated := range []bool{true, false} {
		for _, f := range d.Findings {
			if f.Gated == gated {
				t.Rows = append(t.Rows, f.row())
			}
		}
	}
	return t
}

func (f Finding) name() string {
	if f.Variant == "" {
		return f.Scenario
	}
	return f.Scenario + "/" + f.Variant
}

func (f Finding) row() []string {
	show := significant
	switch {
	case strings.HasPrefix(f.Metric, "ratio "):
		show = fixed
	case strings.HasPrefix(f.Metric, "response_"), strings.HasPrefix(f.Metric, "service_"):
		show = func(ns float64) string { return shortDuration(time.Duration(ns)) }
	}
	verdict := string(f.Verdict)
	if _, counter := tolerances[f.Metric]; counter {
		switch f.Verdict {
		case Slower:
			verdict = "more"
		case Faster:
			verdict = "less"
		}
	}
	row := []string{f.name(), f.Metric, show(f.Old), show(f.New), fixed(f.Ratio), "", "", "", "", verdict}
	if f.Low > 0 || f.High > 0 {
		row[5], row[6] = fixed(f.Low), fixed(f.High)
	}
	if f.Limit > 0 {
		row[7] = fixed(f.Limit)
	}
	if f.Floor > 0 {
		row[8] = fmt.Sprintf("%.1f %%", 100*f.Floor)
	}
	if !f.Gated {
		row[9] = "not gated"
		if f.Verdict != "" {
			row[9] = verdict + ", not gated"
		}
	}
	return row
}

// Headline is the decision in one line.
func (d *Decision) Headline() string {
	var worse []string
	for _, f := range d.Findings {
		if f.Gated && f.Verdict == Slower {
			worse = append(worse, f.name()+" "+f.Metric)
		}
	}
	if len(worse) > 0 {
		return fmt.Sprintf("%s: %s", d.Outcome, strings.Join(worse, ", "))
	}
	return string(d.Outcome)
}

// WriteTable writes the decision for a terminal.
func (d *Decision) WriteTable(w io.Writer) error {
	var b strings.Builder
	if t := d.Table(); len(t.Rows) > 0 {
		t.WriteText(&b)
		b.WriteString("\n")
	}
	for _, r := range d.Reasons {
		b.WriteString(oneLine(r) + "\n")
	}
	b.WriteString(d.Headline() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteMarkdown writes the decision for a comment on a pull request.
func (d *Decision) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", markdownText(d.Headline()))
	for _, r := range d.Reasons {
		fmt.Fprintf(&b, "\n> %s\n", markdownText(r))
	}
	if t := d.Table(); len(t.Rows) > 0 {
		b.WriteString("\n")
		t.WriteMarkdown(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
