package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// WriteGoBench writes the report as lines of `go test -bench`, which benchstat reads: for each interval of each variant
// and kind one line with the mean, p50 and p99 of its operations, in ns, and the counters of the variant.
//
// Names are Benchmark<scenario>/variant=<name>/kind=<name>, for `benchstat -col /variant`. An interval is a sample, so benchstat sees how much they differ. It takes 6 of them for an interval of confidence.
func (r *Report) WriteGoBench(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\n", r.Machine.OS, r.Machine.Arch)
	if r.Machine.CPU != "" {
		fmt.Fprintf(&b, "cpu: %s\n", oneLine(r.Machine.CPU))
	}
	for _, res := range r.Results {
		// A key of the file's configuration: benchstat shows runs with and without it apart.
		for _, kind := range []MarkKind{Invalid, Partial} {
			var reasons []string
			for _, m := range res.Marks {
				if m.Kind == kind {
					reasons = append(reasons, oneLine(m.Reason))
				}
			}
			fmt.Fprintf(&b, "%s: %s\n", kind, strings.Join(reasons, "; "))
		}
		for _, i := range res.Intervals {
			if i.Response.Count > 0 {
				res.goBenchLine(&b, i, r.Machine.GOMAXPROCS)
			}
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("bench: cannot write the benchmark lines: %w", err)
	}
	return nil
}

func (r *Result) goBenchLine(b *strings.Builder, i Interval, procs int) {
	fmt.Fprintf(b, "Benchmark%s%s/variant=%s/kind=%s-%d\t%d\t%.0f ns/op\t%d p50-ns\t%d p99-ns",
		strings.ToUpper(r.Scenario[:1]), r.Scenario[1:], i.Variant, i.Kind, procs,
		i.Response.Count, i.Response.Mean, i.Response.P50.Nanoseconds(), i.Response.P99.Nanoseconds())
	if v := r.Variant(i.Variant); v != nil {
		for _, name := range slices.Sorted(maps.Keys(v.Counters)) {
			unit := name + "/op"
			switch name {
			case AllocsPerOp:
				unit = "allocs/op"
			case BytesPerOp:
				unit = "B/op"
			}
			fmt.Fprintf(b, "\t%g %s", v.Counters[name], unit)
		}
	}
	b.WriteString("\n")
}
