package proxy

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-analyze/charts"
)

// A chart is drawn for the width of a phone, and the page scales it up.
const (
	chartWidth  = 380
	chartHeight = 220
)

// A chart is drawn in colours that stand for those of the style sheet, which knows
// whether the reader wants it light or dark.
var (
	marks = map[string]charts.Color{
		"--text": charts.ColorRGB(1, 1, 1), "--line": charts.ColorRGB(2, 2, 2),
		"--one": charts.ColorRGB(3, 3, 3), "--two": charts.ColorRGB(4, 4, 4), "--three": charts.ColorRGB(5, 5, 5), "--card": charts.ColorRGB(6, 6, 6),
	}
	palette = charts.MakeTheme(charts.ThemeOption{
		AxisStrokeColor: marks["--line"], AxisSplitLineColor: marks["--line"], TextColor: marks["--text"],
		BackgroundColor: marks["--card"],
		SeriesColors:    []charts.Color{marks["--one"], marks["--two"], marks["--three"]},
	})
	toStyle = func() *strings.Replacer {
		var pairs []string
		for name, c := range marks {
			pairs = append(pairs, fmt.Sprintf("rgb(%d,%d,%d)", c.R, c.G, c.B), "var("+name+")")
		}
		return strings.NewReplacer(pairs...)
	}()
	svgHead = regexp.MustCompile(`^<svg[^>]*>`)
)

// draw returns an SVG that tells its label to who does not see it.
func draw(label string, onto func(*charts.Painter) error) (template.HTML, error) {
	p := charts.NewPainter(charts.PainterOptions{OutputFormat: charts.ChartOutputSVG, Width: chartWidth, Height: chartHeight})
	if err := onto(p); err != nil {
		return "", fmt.Errorf("proxy: chart: %w", err)
	}
	svg, err := p.Bytes()
	if err != nil {
		return "", fmt.Errorf("proxy: chart: %w", err)
	}
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`,
		chartWidth, chartHeight, template.HTMLEscapeString(label))
	svg = svgHead.ReplaceAll(bytes.TrimSpace(svg), []byte(strings.ReplaceAll(head, "$", "$$")))
	return template.HTML(toStyle.Replace(string(svg))), nil
}

// short writes a number with two digits that matter, or more where they are whole.
func short(v float64) string {
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case v < 10_000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v/1000, 'f', 0, 64) + "k"
}

// ceiling is the end of an axis for values up to most: an even digit, or 1, and zeros, so that
// its middle is short to write as well.
func ceiling(most float64) *float64 {
	if most <= 0 {
		return charts.Ptr(1.0)
	}
	ten := math.Pow(10, math.Floor(math.Log10(most)))
	for _, n := range []float64{1, 2, 4, 6, 8} {
		if most <= n*ten {
			return charts.Ptr(n * ten)
		}
	}
	return charts.Ptr(10 * ten)
}

func highest(values [][]float64) (most float64) {
	for _, series := range values {
		most = max(most, slices.Max(series))
	}
	return most
}

// padding is what a chart leaves at its edges.
var padding = charts.NewBox(4, 12, 12, 4)

// lines draws series over the last minutes. ago tells how many seconds before
// the last point each is.
func lines(label string, names []string, values [][]float64, ago []int) (template.HTML, error) {
	return draw(label, func(p *charts.Painter) error {
		o := charts.NewLineChartOptionWithData(values)
		o.Theme, o.Padding = palette, padding
		o.Symbol = charts.Symbol{Shape: charts.SymbolNone}
		o.LineStrokeWidth = 2
		o.Legend.SeriesNames = names
		o.XAxis.Labels = make([]string, len(ago))
		for i, s := range ago {
			o.XAxis.Labels[i] = fmt.Sprintf("-%d s", s)
			if s == 0 {
				o.XAxis.Labels[i] = "now"
			}
		}
		o.XAxis.BoundaryGap = charts.Ptr(false)
		o.XAxis.LabelCount = 3 // the ends and the middle, as on the other axis
		o.YAxis = []charts.YAxisOption{{Min: charts.Ptr(0.0), Max: ceiling(highest(values)), LabelCount: 3, ValueFormatter: short}}
		return p.LineChart(o)
	})
}

// bars draws groups of bars, a series each.
func bars(label string, groups, names []string, values [][]float64, format func(float64) string) (template.HTML, error) {
	return draw(label, func(p *charts.Painter) error {
		o := charts.NewBarChartOptionWithData(values)
		o.Theme, o.Padding = palette, padding
		o.Legend.SeriesNames = names
		if len(names) < 2 {
			o.Legend.Show = charts.Ptr(false)
		}
		o.CategoryAxis.Labels = groups
		o.ValueAxis = []charts.ValueAxisOption{{Min: charts.Ptr(0.0), Max: ceiling(1.1 * highest(values)), LabelCount: 3, ValueFormatter: format}} // with room for the figure on the highest
		for i := range o.SeriesList {
			o.SeriesList[i].Label = charts.SeriesLabel{Show: charts.Ptr(true), ValueFormatter: format}
		}
		return p.BarChart(o)
	})
}

// doughnut draws the parts of a whole.
func doughnut(label string, names []string, values []float64) (template.HTML, error) {
	return draw(label, func(p *charts.Painter) error {
		o := charts.NewDoughnutChartOptionWithData(values)
		o.Theme, o.Padding = palette, padding
		o.Legend.SeriesNames = names
		o.RadiusRing, o.RadiusCenter = "42%", "26%"
		for i := range o.SeriesList {
			o.SeriesList[i].Label.Show = charts.Ptr(false) // the legend has the figures
		}
		return p.DoughnutChart(o)
	})
}
