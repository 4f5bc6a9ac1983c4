package proxy

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
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
		m.duration, m.rejected, cacheCollector{p},
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

// cacheCollector reads the cache's counts when it is asked.
type cacheCollector struct{ p *Proxy }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("shardkit_"+name, help, labels, nil)
}

var (
	reads        = describe("cache_reads_total", "Keys read, by who answered: l1 (this process), l2 (a shard) or none.", "answered")
	localEntries = describe("cache_local_entries", "Entries in this process.")
	localRefused = describe("cache_local_refused_total", "Values kept out of this process since a later write of their key was known.")
	fills        = describe("cache_fills_total", "Values brought back with Cache-Fill, by what became of them.", "outcome")
	corrupt      = describe("cache_corrupt_total", "Values on shards that could not be read, taken for misses.")

	shardUp       = describe("shard_up", "1 while the shard serves.", "shard")
	shardSince    = describe("shard_state_change_timestamp_seconds", "When the shard last came or went.", "shard")
	shardCommands = describe("shard_commands_total", "Commands sent.", "shard")
	shardErrors   = describe("shard_command_errors_total", "Commands that failed.", "shard")
	shardRefused  = describe("shard_commands_refused_total", "Commands not sent, since the shard had failed of late.", "shard")
	shardShare    = describe("shard_key_ratio", "Part of all keys that could be that the ring gives to the shard.", "shard")
	busLag        = describe("bus_lag_seconds", "How long the last heartbeat took behind the shard's notices.", "shard")
	busEnded      = describe("bus_views_ended_total", "Times that what this process held of the shard ceased to count: the subscription was lost, a notice did not arrive (gap), the shard came with other data (epoch).", "shard", "reason")

	ringInfo  = describe("ring_info", "1; the fingerprint is the same in all processes that place keys alike.", "fingerprint")
	remapRate = describe("ring_remap_ratio", "Part of the keys that a change of the shards would move, measured on a sample.", "change", "placement")
)

// Describe sends nothing: what there is depends on the shards.
func (c cacheCollector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the present counts.
func (c cacheCollector) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	const count, gauge = prometheus.CounterValue, prometheus.GaugeValue
	s := c.p.cache.Stats()
	send(reads, count, float64(s.LocalHits), "l1")
	send(reads, count, float64(s.ShardHits), "l2")
	send(reads, count, float64(s.Misses), "none")
	send(localEntries, gauge, float64(s.LocalEntries))
	send(localRefused, count, float64(s.RefusedLocal))
	send(fills, count, float64(s.Fills), "stored")
	send(fills, count, float64(s.RefusedFills), "refused")
	send(corrupt, count, float64(s.Corrupt))
	states, shares := c.p.watch.states(), c.p.cache.Ring().Shares()
	for i, shard := range s.Shards {
		up := 0.0
		if states[i].serving {
			up = 1
		}
		// A label must be UTF-8, and a name need not be.
		name := strings.ToValidUTF8(shard.Name, "\uFFFD")
		send(shardUp, gauge, up, name)
		send(shardSince, gauge, float64(states[i].since.UnixMilli())/1000, name)
		send(shardCommands, count, float64(shard.Calls), name)
		send(shardErrors, count, float64(shard.Errors), name)
		send(shardRefused, count, float64(shard.Refused), name)
		send(shardShare, gauge, shares[i], name)
		send(busLag, gauge, shard.Lag.Seconds(), name)
		send(busEnded, count, float64(shard.Lost), name, "lost")
		send(busEnded, count, float64(shard.Gaps), name, "gap")
		send(busEnded, count, float64(shard.Epochs), name, "epoch")
	}
	send(ringInfo, gauge, 1, hex16(c.p.cache.Ring().Fingerprint()))
	for _, m := range c.p.watch.remaps {
		send(remapRate, gauge, m.Ring, m.Change, "ring")
		send(remapRate, gauge, m.Modulo, m.Change, "modulo")
	}
}
