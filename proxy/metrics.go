package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/shardkit/shardkit/tiercache"
	tiermetrics "github.com/shardkit/shardkit/tiercache/metrics"
)

// metrics are what Prometheus gets.
type metrics struct {
	watch    *watch
	duration *prometheus.HistogramVec
	rejected prometheus.Counter
	handler  http.Handler
}

func newMetrics(p *Proxy) *metrics {
	m := &metrics{
		watch: p.watch,
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shardkit_http_request_duration_seconds", Help: "Time from a request's header to the end of its answer.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "method", "code"}),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "shardkit_http_requests_rejected_total", Help: "Requests refused since too many were under way.",
		}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.duration, m.rejected, tiermetrics.NewCollector("proxy", p.cache), cacheCollector{p},
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "shardkit_http_requests_in_flight", Help: "Requests that use the cache now.",
		}, func() float64 { return float64(len(p.slots)) }),
	)
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

// observe counts a request.
func (m *metrics) observe(route, method string, status int, took time.Duration) {
	switch method {
	case "GET", "HEAD", "PUT", "DELETE", "POST":
	default:
		method = "other" // a client may invent them
	}
	m.duration.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
	if route == "cache" || route == "mget" {
		m.watch.observe(took, status >= 500)
	}
}

func (p *Proxy) serveMetrics(w http.ResponseWriter, r *http.Request) error {
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		answer(w, http.StatusOK, p.Snapshot())
		return nil
	}
	p.metrics.handler.ServeHTTP(w, r)
	return nil
}

// cacheCollector tells of shards and ring what package metrics of tiercache does not.
type cacheCollector struct{ p *Proxy }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("shardkit_"+name, help, labels, nil)
}

var (
	shardUp    = describe("shard_up", "1 while the shard serves.", "shard")
	shardSince = describe("shard_state_change_timestamp_seconds", "When the shard last came or went.", "shard")
	shardShare = describe("shard_key_ratio", "Part of all keys that could be that the ring gives to the shard.", "shard")

	ringInfo  = describe("ring_info", "1; the fingerprint is the same in all processes that place keys alike.", "fingerprint")
	remapRate = describe("ring_remap_ratio", "Part of the keys that a change of the shards would move, measured on a sample.", "change", "placement")
)

// Describe sends nothing: what there is depends on the shards.
func (c cacheCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the present counts.
func (c cacheCollector) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	states, shares := c.p.shards(), c.p.cache.Ring().Shares()
	for i, shard := range c.p.cache.Ring().Nodes() {
		up := 0.0
		if states[i].State == tiercache.ShardServing.String() {
			up = 1
		}
		name := tiermetrics.Label(shard.Name)
		send(shardUp, up, name)
		send(shardSince, float64(states[i].Since.UnixMilli())/1000, name)
		send(shardShare, shares[i], name)
	}
	send(ringInfo, 1, hex16(c.p.cache.Ring().Fingerprint()))
	for _, m := range c.p.watch.remaps {
		send(remapRate, m.Ring, m.Change, "ring")
		send(remapRate, m.Modulo, m.Change, "modulo")
	}
}
