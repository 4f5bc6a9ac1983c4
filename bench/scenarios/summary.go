package scenarios

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shardkit/shardkit/bench"
)

// WriteSummary writes a line for each variant of each result: what it took, relative to the baseline and in all, and what
// it cost. Result.WriteTable of package bench tells more of one result.
func WriteSummary(w io.Writer, results []*bench.Result) error {
	var b strings.Builder
	for i, res := range results {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s: %s\n", res.Scenario, res.Doc)
		if len(res.Variants) > 0 {
			summary(res).write(&b)
		}
		for _, v := range res.Variants {
			for _, f := range v.Failures {
				fmt.Fprintf(&b, "  %s: %d x %s: %s\n", v.Name, f.Count, f.Kind, oneLine(strings.Join(f.Texts, " | ")))
			}
		}
		for _, m := range res.Marks {
			fmt.Fprintf(&b, "  %s: %s\n", strings.ToUpper(string(m.Kind)), oneLine(m.Reason))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// summary leaves out the twin: its noise is told in the baseline's line.
func summary(res *bench.Result) rows {
	timed := slices.ContainsFunc(res.Variants, func(v bench.VariantResult) bool { return v.Response.Count > 0 })
	names := counterNames(res)
	head := []string{"  "}
	if timed {
		head = append(head, "p50", "p99", "ratio", "from", "to", "")
	}
	head = append(head, names...)
	t := rows{head}
	for i, v := range res.Variants {
		if v.Twin {
			continue
		}
		row := []string{"  " + v.Name}
		if timed {
			row = append(row, duration(v.Response.P50), duration(v.Response.P99))
			row = append(row, compared(res, i)...)
		}
		for _, name := range names {
			row = append(row, counted(v, name))
		}
		t = append(t, row)
	}
	return t
}

// compared is the cells of the ratio, its interval, and what is to be said of them.
func compared(res *bench.Result, variant int) []string {
	metric := metricOf(res.Scenario)
	if res.Settings.Load.Mode == bench.Open && metric == "response_p50" {
		metric = "service_p50" // response holds the queue in which all variants stood
	}
	v := res.Variants[variant]
	if variant == 0 {
		for _, c := range res.Comparisons {
			if c.Twin && c.Metric == metric {
				return []string{"1", "", "", fmt.Sprintf("noise %.0f %%", 100*c.Floor)}
			}
		}
		return []string{"1", "", "", ""}
	}
	c := res.Comparison(v.Name, metric)
	if c == nil {
		return []string{"-", "", "", ""}
	}
	return []string{ratio(c.Ratio), ratio(c.Low), ratio(c.High), string(c.Verdict)}
}

// told are the counters that are shown, in the order in which they read well: what is asked of the servers, what it costs
// this process, and what some scenario adds.
var told = []struct {
	name, head string
	share      bool
}{
	{bench.RedisCommands, "commands", false},
	{bench.RedisReads, "reads", false},
	{bench.RedisBytesIn, "bytes sent", false},
	{bench.RedisBytesOut, "bytes back", false},
	{bench.AllocsPerOp, "allocs", false},
	{PublishTime, "ms a publish", false},
	{SameNode, "same node", true},
	{SameSlot, "same slot", true},
	{Lost, "lost", true},
	{LostByAdd, "by add", true},
	{LostByRemove, "by remove", true},
	{LostByMove, "by move", true},
}

// counterNames returns the heads of those that any variant has.
func counterNames(res *bench.Result) []string {
	var heads []string
	for _, c := range told {
		if slices.ContainsFunc(res.Variants, func(v bench.VariantResult) bool { _, has := v.Counters[c.name]; return has }) {
			heads = append(heads, c.head)
		}
	}
	return heads
}

func counted(v bench.VariantResult, head string) string {
	for _, c := range told {
		n, has := v.Counters[c.name]
		switch {
		case c.head != head:
		case !has:
			return "-"
		case c.share:
			return number(100*n) + " %"
		default:
			return number(n)
		}
	}
	return "-"
}

// rows are cells; the first row is the head.
type rows [][]string

// write aligns the first column and the verdict to the left, and all else to the right.
func (t rows) write(b *strings.Builder) {
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
			if i == 0 || t[0][i] == "" {
				line.WriteString(cell + gap)
			} else {
				line.WriteString(gap + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// duration keeps 3 digits.
func duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return number(float64(d)/1e3) + " us"
	case d < time.Second:
		return number(float64(d)/1e6) + " ms"
	}
	return number(d.Seconds()) + " s"
}

func ratio(f float64) string {
	if f >= 100 {
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}

// number keeps 3 digits, and all digits of large numbers, in groups.
func number(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f >= 1000:
		s := strconv.FormatFloat(f, 'f', 0, 64)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	case f >= 100:
		return strconv.FormatFloat(f, 'f', 0, 64)
	}
	return strconv.FormatFloat(f, 'g', 3, 64)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
