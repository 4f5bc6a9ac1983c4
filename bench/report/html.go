package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/shardkit/shardkit/bench"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"day":    func(t time.Time) string { return t.Format(time.DateOnly) },
	"indent": func(cell string) bool { return strings.HasPrefix(cell, " ") },
	"plots":  plots,
	"bad":    func(r *bench.Result) string { return warning(r) },
}).Parse(pageText))

// WriteHTML writes the report as one page that needs no other file.
func WriteHTML(w io.Writer, r *bench.Report) error {
	if err := page.Execute(w, r); err != nil {
		return fmt.Errorf("bench: cannot write the HTML report: %w", err)
	}
	return nil
}

// plots are what of a result can be plotted. They are built here, with everything escaped.
func plots(r *bench.Result) ([]template.HTML, error) {
	percentiles, err := Percentiles(r)
	if err != nil {
		return nil, err
	}
	var all []template.HTML
	for _, svg := range [][]byte{Ratios(r), percentiles, Timeline(r)} {
		if svg != nil {
			all = append(all, template.HTML(svg))
		}
	}
	return all, nil
}
