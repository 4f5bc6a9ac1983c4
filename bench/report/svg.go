package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/shardkit/shardkit/bench"
)

// canvas is an SVG image under way. Colours are classes, so that the reader's device chooses light or dark.
type canvas struct {
	b             strings.Builder
	width, height float64
}

const style = `<style>
.bg{fill:#fff}.text{fill:#57606a;font:12px system-ui,sans-serif}.head{fill:#1f2328;font:600 13px system-ui,sans-serif}
.grid{stroke:#d8dee4;stroke-width:1}.one{stroke:#8c959f;stroke-width:1}.mark{fill:#cf222e;font:600 12px system-ui,sans-serif}
.fault{stroke:#cf222e;stroke-width:1.5;stroke-dasharray:3 3}.line{fill:none;stroke-width:2;stroke-linejoin:round}.thin{stroke-width:1.5;stroke-dasharray:2 4}
.c0{stroke:#0969da}.c1{stroke:#bc4c00}.c2{stroke:#1a7f37}.c3{stroke:#8250df}.c4{stroke:#bf3989}.c5{stroke:#7d4e00}.twin{stroke:#8c959f}
.slower{fill:#ff8182}.faster{fill:#4ac26b}.same{fill:#afb8c1}.whisker{stroke:#1f2328;stroke-width:1.5}
@media (prefers-color-scheme:dark){.bg{fill:#0d1117}.text{fill:#9198a1}.head{fill:#f0f6fc}.grid{stroke:#2a313c}.one{stroke:#656c76}.mark{fill:#ff7b72}
.fault{stroke:#ff7b72}.c0{stroke:#58a6ff}.c1{stroke:#f0883e}.c2{stroke:#3fb950}.c3{stroke:#bc8cff}.c4{stroke:#f778ba}.c5{stroke:#d4a72c}.twin{stroke:#7d8590}
.slower{fill:#b62324}.faster{fill:#238636}.same{fill:#484f58}.whisker{stroke:#f0f6fc}}
</style>`

func newCanvas(width, height float64) *canvas { return &canvas{width: width, height: height} }

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", class, x1, y1, x2, y2)
}

func (c *canvas) rect(class string, x, y, width, height float64) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`+"\n", class, x, y, width, height)
}

// text is anchored at its start, middle or end.
func (c *canvas) text(class, anchor string, x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" text-anchor="%s" x="%.1f" y="%.1f">%s</text>`+"\n", class, anchor, x, y, html.EscapeString(s))
}

type point struct{ x, y float64 }

func (c *canvas) polyline(class string, points []point) {
	var at []string
	for _, p := range points {
		at = append(at, fmt.Sprintf("%.1f,%.1f", p.x, p.y))
	}
	fmt.Fprintf(&c.b, `<polyline class="%s" points="%s"/>`+"\n", class, strings.Join(at, " "))
}

// svg is the whole image. The description is for those who do not see it.
func (c *canvas) svg(title, description string) []byte {
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" style="max-width:100%%;height:auto" role="img">
<title>%s</title><desc>%s</desc>
%s
<rect class="bg" width="100%%" height="100%%"/>
%s</svg>
`, c.width, c.height, c.width, c.height, html.EscapeString(title), html.EscapeString(description), style, c.b.String())
}

// heading is the first line of every plot, with what keeps the figures from meaning what they say.
func (c *canvas) heading(r *bench.Result, what string) {
	c.text("head", "start", 12, 20, r.Scenario+": "+what)
	if warning := warning(r); warning != "" {
		c.text("mark", "end", c.width-12, 20, strings.ToUpper(warning))
	}
}

func warning(r *bench.Result) string {
	var all []string
	for _, kind := range []bench.MarkKind{bench.Invalid, bench.Partial} {
		if r.Is(kind) {
			all = append(all, string(kind))
		}
	}
	return strings.Join(all, ", ")
}

// axis maps values to a coordinate.
type axis struct {
	from, to float64 // values
	at, end  float64 // their coordinates
	log      bool
}

func (a axis) pos(v float64) float64 {
	from, to := a.from, a.to
	if a.log {
		v, from, to = math.Log(v), math.Log(from), math.Log(to)
	}
	if to == from {
		return (a.at + a.end) / 2
	}
	return a.at + (v-from)/(to-from)*(a.end-a.at)
}

// logTicks are about five round numbers in the range, which holds at least one.
func logTicks(from, to float64) []float64 {
	var ticks []float64
	for _, steps := range [][]float64{{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 6, 8}} {
		ticks = nil
		for decade := math.Pow(10, math.Floor(math.Log10(from))); decade <= to; decade *= 10 {
			for _, s := range steps {
				if v := decade * s; v >= from*0.9999 && v <= to*1.0001 {
					ticks = append(ticks, v)
				}
			}
		}
		if len(ticks) >= 4 {
			break
		}
	}
	return ticks
}

// linearTicks are about six round numbers from 0 on.
func linearTicks(to float64) []float64 {
	step := math.Pow(10, math.Floor(math.Log10(to)))
	for _, part := range []float64{0.1, 0.2, 0.5, 1} {
		if to/(step*part) <= 8 {
			step *= part
			break
		}
	}
	var ticks []float64
	for i := 0.0; i*step <= to; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

// padded is the range of positive values with a little room around it.
func padded(values []float64) (from, to float64, ok bool) {
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !(v > 0) || math.IsInf(v, 1) })
	if len(values) == 0 {
		return 0, 0, false
	}
	return slices.Min(values) / 1.15, slices.Max(values) * 1.15, true
}

// legend names series, and returns the y below it. A name takes some 7 px a letter.
func (c *canvas) legend(names []string, class func(i int) string) float64 {
	x, y := 12.0, 40.0
	for i, name := range names {
		w := 34 + 7*float64(len(name))
		if x+w > c.width-12 && x > 12 {
			x, y = 12, y+18
		}
		c.line("line "+class(i), x, y-4, x+18, y-4)
		c.text("text", "start", x+24, y, name)
		x += w
	}
	return y + 12
}

// colour is the class of the i-th series.
func colour(twin bool, i int) string {
	if twin {
		return "twin thin"
	}
	return fmt.Sprintf("c%d", i%6)
}
