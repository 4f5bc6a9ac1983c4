package report

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/shardkit/shardkit/bench"
)

const (
	plotWidth  = 720
	plotHeight = 320
	leftEdge   = 64
	rightEdge  = plotWidth - 16
	lowerEdge  = plotHeight - 40
)

// Percentiles plots the response times of each variant over the percentile, or returns nil if there are none. Both axes are
// logarithmic: the one to the right goes by nines.
func Percentiles(r *bench.Result) ([]byte, error) {
	type curve struct {
		name   string
		class  string
		points []point // nines, ns
	}
	var curves []curve
	var values []float64
	nines := 0.0
	for i, v := range r.Variants {
		if v.Response.Count == 0 {
			continue
		}
		h, err := v.Response.Histogram()
		if err != nil {
			return nil, err
		}
		c := curve{name: v.Name, class: colour(v.Twin, i)}
		last := math.Log10(float64(v.Response.Count))
		for n := 0.0; n < last+0.05; n += 0.05 {
			n := min(n, last)
			ns := min(float64(h.ValueAtPercentile(100*(1-math.Pow(10, -n)))), float64(v.Response.Max))
			c.points = append(c.points, point{n, ns})
			values = append(values, ns)
		}
		nines = max(nines, last)
		curves = append(curves, c)
	}
	from, to, ok := padded(values)
	if !ok {
		return nil, nil
	}
	c := newCanvas(plotWidth, plotHeight)
	c.heading(r, "response time by percentile")
	class := func(i int) string { return curves[i].class }
	var names []string
	for _, cv := range curves {
		names = append(names, cv.name)
	}
	top := c.legend(names, class)
	x := axis{from: 0, to: max(nines, 1), at: leftEdge, end: rightEdge}
	y := c.latencyAxis(from, to, top)
	for _, tick := range []struct {
		at   float64
		name string
	}{{0, "0 %"}, {math.Log10(2), "50 %"}, {1, "90 %"}, {2, "99 %"}, {3, "99.9 %"}, {4, "99.99 %"}, {5, "99.999 %"}, {6, "99.9999 %"}} {
		if tick.at <= x.to {
			c.line("grid", x.pos(tick.at), top, x.pos(tick.at), lowerEdge)
			c.text("text", "middle", x.pos(tick.at), lowerEdge+18, tick.name)
		}
	}
	for i, cv := range curves {
		var line []point
		for _, p := range cv.points {
			if p.y > 0 {
				line = append(line, point{x.pos(p.x), y.pos(p.y)})
			}
		}
		c.polyline("line "+class(i), line)
	}
	return c.svg(r.Scenario+": response time by percentile", described(r)), nil
}

// Timeline plots p99 (solid) and p50 (dotted) of each interval, and marks events; nil if there are less than two intervals.
func Timeline(r *bench.Result) []byte {
	type series struct {
		name     string
		class    string
		p50, p99 []point // seconds, ns
	}
	var all []*series
	byName := map[string]*series{}
	for i, v := range r.Variants {
		for k, kind := range v.Kinds {
			s := &series{name: v.Name, class: strings.TrimSuffix(colour(v.Twin, i+k*len(r.Variants)), " thin")}
			if len(v.Kinds) > 1 {
				s.name += "/" + kind.Name
			}
			byName[v.Name+"/"+kind.Name] = s
			all = append(all, s)
		}
	}
	var values []float64
	longest := 0
	for _, i := range r.Intervals {
		s := byName[i.Variant+"/"+i.Kind]
		// A stub in the end holds few operations.
		if s == nil || i.Response.Count == 0 || i.End.Sub(i.Start) < r.Settings.Interval/2 {
			continue
		}
		at := i.Start.Add(i.End.Sub(i.Start) / 2).Sub(r.Measured).Seconds()
		s.p50 = append(s.p50, point{at, float64(i.Response.P50)})
		s.p99 = append(s.p99, point{at, float64(i.Response.P99)})
		longest = max(longest, len(s.p99))
		values = append(values, float64(i.Response.P50), float64(i.Response.P99))
	}
	from, to, ok := padded(values)
	if !ok || longest < 2 {
		return nil
	}
	c := newCanvas(plotWidth, plotHeight)
	c.heading(r, "p99 (solid) and p50 (dotted) over time")
	class := func(i int) string { return all[i].class }
	var names []string
	for _, s := range all {
		names = append(names, s.name)
	}
	top := c.legend(names, class)
	if len(r.Events) > 0 {
		top += 16
	}
	y := c.latencyAxis(from, to, top)
	x := axis{from: 0, to: max(r.Ended.Sub(r.Measured).Seconds(), 0.001), at: leftEdge, end: rightEdge}
	for _, tick := range linearTicks(x.to) {
		c.line("grid", x.pos(tick), top, x.pos(tick), lowerEdge)
		c.text("text", "middle", x.pos(tick), lowerEdge+18, fmt.Sprintf("%g s", math.Round(tick*1000)/1000))
	}
	for i, s := range all {
		for _, part := range []struct {
			class  string
			points []point
		}{{"line thin ", s.p50}, {"line ", s.p99}} {
			var line []point
			for _, p := range part.points {
				if p.y > 0 {
					line = append(line, point{x.pos(p.x), y.pos(p.y)})
				}
			}
			c.polyline(part.class+class(i), line)
		}
	}
	for _, e := range r.Events {
		at := x.pos(e.At.Sub(r.Measured).Seconds())
		c.line("fault", at, top, at, lowerEdge)
		anchor := "start"
		if at > plotWidth*2/3 {
			anchor = "end"
		}
		c.text("mark", anchor, at, top-4, e.Text)
	}
	return c.svg(r.Scenario+": response time over time", described(r))
}

// latencyAxis draws the grid of durations.
func (c *canvas) latencyAxis(from, to, top float64) axis {
	y := axis{from: from, to: to, at: lowerEdge, end: top, log: true}
	for _, tick := range logTicks(from, to) {
		c.line("grid", leftEdge, y.pos(tick), rightEdge, y.pos(tick))
		c.text("text", "end", leftEdge-6, y.pos(tick)+4, time.Duration(math.Round(tick)).String())
	}
	return y
}

const (
	barRow   = 26
	barLeft  = 190
	barRight = plotWidth - 170
)

// Ratios plots each comparison as a bar from 1 to the ratio, with its interval; nil if there are none.
func Ratios(r *bench.Result) []byte {
	var rows []bench.Comparison
	values := []float64{1}
	for _, cmp := range r.Comparisons {
		if strings.HasSuffix(cmp.Metric, "_mean") || !(cmp.Low > 0) || math.IsInf(cmp.High, 1) {
			continue
		}
		rows = append(rows, cmp)
		values = append(values, cmp.Low, cmp.High)
	}
	if len(rows) == 0 {
		return nil
	}
	from, to, _ := padded(values)
	c := newCanvas(plotWidth, 76+barRow*float64(len(rows)))
	c.heading(r, fmt.Sprintf("ratio to %s, with %.4g %% interval", rows[0].Baseline, 100*r.Settings.Confidence))
	bottom := 40 + barRow*float64(len(rows))
	x := axis{from: min(from, 0.8), to: max(to, 1.25), at: barLeft, end: barRight, log: true}
	for _, tick := range logTicks(x.from, x.to) {
		c.line("grid", x.pos(tick), 34, x.pos(tick), bottom)
		c.text("text", "middle", x.pos(tick), bottom+18, fmt.Sprintf("%g", math.Round(tick*1e6)/1e6))
	}
	for i, cmp := range rows {
		y := 40 + barRow*float64(i)
		middle := y + barRow/2 - 2
		c.text("text", "end", barLeft-8, middle+4, cmp.Variant+" "+strings.ReplaceAll(cmp.Metric, "_", " "))
		class := "same"
		if !cmp.Twin && (cmp.Verdict == bench.Slower || cmp.Verdict == bench.Faster) {
			class = string(cmp.Verdict)
		}
		a, b := x.pos(min(1, cmp.Ratio)), x.pos(max(1, cmp.Ratio))
		c.rect(class, a, y+3, max(b-a, 1), barRow-10)
		c.line("whisker", x.pos(cmp.Low), middle, x.pos(cmp.High), middle)
		for _, end := range []float64{cmp.Low, cmp.High} {
			c.line("whisker", x.pos(end), middle-4, x.pos(end), middle+4)
		}
		c.text("text", "start", barRight+10, middle+4, ratioText(cmp))
	}
	c.line("one", x.pos(1), 34, x.pos(1), bottom)
	return c.svg(r.Scenario+": ratios", described(r))
}

func ratioText(c bench.Comparison) string {
	if c.Twin {
		return fmt.Sprintf("%.3f, noise %.1f %%", c.Ratio, 100*c.Floor)
	}
	return fmt.Sprintf("%.3f, %s", c.Ratio, c.Verdict)
}

// described is the plot's figures in words.
func described(r *bench.Result) string {
	var all []string
	for _, v := range r.Variants {
		if v.Response.Count > 0 {
			all = append(all, fmt.Sprintf("%s: p50 %v, p99 %v", v.Name, v.Response.P50, v.Response.P99))
		}
	}
	return cmp.Or(strings.Join(append(all, r.Notes()...), "; "), r.Doc)
}
