package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/shardkit/shardkit/bench"
)

// WriteDir writes every format there is into a folder, which it makes, and returns the files' names:
//
//	report.json, report.txt, report.md, report.html, report.bench (for benchstat)
//	SCENARIO.hlog                 interval log
//	SCENARIO.VARIANT.hgrm         percentile table
//	SCENARIO-ratios.svg, -percentiles.svg, -timeline.svg
//
// There are no interval logs for a report that was read from a file, as it does not hold the intervals' histograms.
// Files of the same names are replaced, others stay. The first error ends it.
func WriteDir(dir string, r *bench.Report) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("bench: cannot make the folder for the report: %w", err)
	}
	d := folder{path: dir}
	if err := r.WriteJSON(filepath.Join(dir, "report.json")); err != nil {
		return nil, err
	}
	d.files = append(d.files, "report.json")
	d.write("report.txt", r.WriteTable)
	d.write("report.md", r.WriteMarkdown)
	d.write("report.bench", r.WriteGoBench)
	d.write("report.html", func(w io.Writer) error { return WriteHTML(w, r) })
	for _, res := range r.Results {
		d.result(res)
	}
	return d.files, d.err
}

type folder struct {
	path  string
	files []string
	err   error
}

func (d *folder) write(name string, format func(io.Writer) error) {
	if d.err != nil {
		return
	}
	var b bytes.Buffer
	if d.err = format(&b); d.err != nil {
		return
	}
	if err := os.WriteFile(filepath.Join(d.path, name), b.Bytes(), 0o644); err != nil {
		d.err = fmt.Errorf("bench: cannot write the report: %w", err)
		return
	}
	d.files = append(d.files, name)
}

func (d *folder) image(name string, svg []byte) {
	if svg != nil {
		d.write(name, func(w io.Writer) error { _, err := w.Write(svg); return err })
	}
}

func (d *folder) result(r *bench.Result) {
	if len(r.Intervals) > 0 {
		if _, err := r.Intervals[0].Histogram(); err == nil {
			d.write(r.Scenario+".hlog", r.WriteHDRLog)
		}
	}
	for _, v := range r.Variants {
		if v.Response.Count > 0 && !v.Twin {
			d.write(r.Scenario+"."+v.Name+".hgrm", func(w io.Writer) error { return r.WriteHGRM(w, v.Name) })
		}
	}
	percentiles, err := Percentiles(r)
	if d.err == nil {
		d.err = err
	}
	d.image(r.Scenario+"-ratios.svg", Ratios(r))
	d.image(r.Scenario+"-percentiles.svg", percentiles)
	d.image(r.Scenario+"-timeline.svg", Timeline(r))
}
