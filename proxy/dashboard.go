package proxy

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

//go:embed dashboard
var files embed.FS

var pageTemplate = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"short":   short,
	"clip":    clip,
	"join":    func(names []string) string { return strings.Join(names, ", ") },
	"percent": percent,
	"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05") + " UTC" },
	"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"ms":      milliseconds,
	"up":      func(s float64) string { return (time.Duration(s) * time.Second).String() },
}).ParseFS(files, "dashboard/page.html"))

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func milliseconds(v float64) string {
	switch {
	case v > 0 && v < 0.1:
		return fmt.Sprintf("%.0f µs", 1000*v)
	case v < 10:
		return fmt.Sprintf("%.2f ms", v)
	}
	return fmt.Sprintf("%.0f ms", v)
}

// drawEvery is how often the dashboard is drawn at most, however many read it.
const drawEvery = 100 * time.Millisecond

// page is the dashboard.
type page struct {
	p *Proxy

	mu    sync.Mutex
	drawn time.Time
	html  []byte
	err   error
}

func newPage(p *Proxy) *page { return &page{p: p} }

// view is what the page shows.
type view struct {
	Snapshot
	Status   Health
	Out      []ShardHealth
	Requests template.HTML
	Latency  template.HTML
	Reads    template.HTML
	Load     template.HTML
	Remap    template.HTML
}

func (g *page) render() ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Since(g.drawn) < drawEvery {
		return g.html, g.err
	}
	var b bytes.Buffer
	v, err := g.view()
	if err == nil {
		err = pageTemplate.Execute(&b, v)
	}
	g.html, g.err, g.drawn = b.Bytes(), err, time.Now()
	return g.html, g.err
}

func (g *page) view() (v view, err error) {
	v.Snapshot, v.Status = g.p.Snapshot(), g.p.Health()
	for _, s := range v.Status.Shards {
		if s.State != tiercache.ShardServing.String() {
			v.Out = append(v.Out, s)
		}
	}
	past := g.p.watch.past()
	if len(past) == 1 {
		past = append(past, past[0]) // a line has two ends
	}
	var ago []int
	var served, failed, p50, p95, p99 []float64
	newest := past[len(past)-1].at
	for i, s := range past[1:] {
		before := past[i]
		per := rate(s.at.Sub(before.at))
		ago = append(ago, int(newest.Sub(s.at).Seconds()+0.5))
		served = append(served, per(s.requests, before.requests))
		failed = append(failed, per(s.failed, before.failed))
		p50, p95, p99 = append(p50, s.p50), append(p95, s.p95), append(p99, s.p99)
	}
	l, s := v.Snapshot.LatencyMS, v.Snapshot
	do := func(into *template.HTML, html template.HTML, failed error) {
		*into = html
		if err == nil {
			err = failed
		}
	}
	html, e := lines(fmt.Sprintf("Requests a second over the last two minutes; now %s.", short(s.Requests.PerSecond)),
		[]string{"all", "failed"}, [][]float64{served, failed}, ago)
	do(&v.Requests, html, e)
	html, e = lines(fmt.Sprintf("Latency in ms over the last two minutes; now p50 %s, p95 %s, p99 %s.", milliseconds(l.P50), milliseconds(l.P95), milliseconds(l.P99)),
		[]string{"p50", "p95", "p99"}, [][]float64{p50, p95, p99}, ago)
	do(&v.Latency, html, e)
	if all := float64(s.Reads.L1 + s.Reads.L2 + s.Reads.Misses); all > 0 {
		html, e = doughnut(fmt.Sprintf("Reads by who answered: L1 %d, L2 %d, nobody %d.", s.Reads.L1, s.Reads.L2, s.Reads.Misses),
			[]string{"L1 " + percent(float64(s.Reads.L1)/all), "L2 " + percent(float64(s.Reads.L2)/all), "miss " + percent(float64(s.Reads.Misses)/all)}, []float64{float64(s.Reads.L1), float64(s.Reads.L2), float64(s.Reads.Misses)})
		do(&v.Reads, html, e)
	}
	var names, said, changes []string
	var load, byRing, byModulo []float64
	for _, shard := range s.Shards {
		names, load = append(names, clip(12, shard.Name)), append(load, shard.PerSecond)
		said = append(said, fmt.Sprintf("%s %s", shard.Name, short(shard.PerSecond)))
	}
	html, e = bars("Commands a second by shard: "+strings.Join(said, ", ")+".", names, nil, [][]float64{load}, short)
	do(&v.Load, html, e)
	said = nil
	for _, m := range s.Ring.Remaps {
		changes, byRing, byModulo = append(changes, m.Change), append(byRing, 100*m.Ring), append(byModulo, 100*m.Modulo)
		said = append(said, fmt.Sprintf("%s: %s by the ring, %s by modulo", m.Change, percent(m.Ring), percent(m.Modulo)))
	}
	if len(changes) > 0 {
		html, e = bars("Keys that move. "+strings.Join(said, "; ")+".", changes, []string{"this ring", "hash modulo shards"},
			[][]float64{byRing, byModulo}, func(v float64) string { return fmt.Sprintf("%.0f %%", v) })
		do(&v.Remap, html, e)
	}
	return v, err
}

// clip keeps a name to so many letters.
func clip(most int, name string) string {
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}

// policy allows what is ours, and the style attributes that the charts have.
const policy = "default-src 'none'; style-src 'self'; style-src-attr 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (p *Proxy) dashboard(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	if r.URL.Path != "/" {
		name := strings.TrimPrefix(r.URL.Path, "/")
		body, err := files.ReadFile(name)
		kind := mime.TypeByExtension(path.Ext(name))
		if err != nil || path.Ext(name) == ".html" {
			return fail(http.StatusNotFound, "no such path: the dashboard is at /")
		}
		h.Set("Content-Type", kind)
		w.Write(body)
		return nil
	}
	html, err := p.page.render()
	if err != nil {
		return err
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Type", "text/html; charset=utf-8")
	w.Write(html)
	return nil
}
