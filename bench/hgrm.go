package bench

import (
	"fmt"
	"io"
	"strings"
)

// Microseconds: with the table's three decimals, every nanosecond shows.
const hgrmScale = 1e3

// WriteHGRM writes the distribution of one variant's response times as HdrHistogram's percentile table (.hgrm), in
// microseconds: https://hdrhistogram.github.io/HdrHistogram/plotFiles.html plots several of them.
func (r *Result) WriteHGRM(w io.Writer, variant string) error {
	v := r.Variant(variant)
	if v == nil {
		return fmt.Errorf("bench: %s has no variant %q", r.Scenario, variant)
	}
	h, err := v.Response.Histogram()
	if err != nil {
		return err
	}
	var b strings.Builder
	if _, err := h.PercentilesPrint(&b, 5, hgrmScale); err != nil {
		return fmt.Errorf("bench: print the percentiles of %s: %w", variant, err)
	}
	for _, m := range r.Marks {
		fmt.Fprintf(&b, "#[%s]\n", m)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("bench: cannot write the percentile table: %w", err)
	}
	return nil
}
