// Package metrics gives the counts of a tiercache to Prometheus.
//
//	prometheus.MustRegister(metrics.NewCollector("users", users))
//
// Every metric has the label cache, which is the name given. README.md of this folder
// lists them. A scrape calls Stats once, and asks no shard.
//
// Guaranteed: counters never fall while the cache is open. Not guaranteed: that the figures of one scrape are of one moment, nor
// that names stay as they are before v1. Nothing here fails; registering two collectors of one name is client_golang's error.
package metrics

import (
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/shardkit/shardkit/tiercache"
)

// Source is a cache: every *tiercache.Cache is one.
type Source interface{ Stats() tiercache.Stats }

// NewCollector returns a collector of cache's counts. Collectors of one registry
// need different names.
func NewCollector(name string, cache Source) prometheus.Collector {
	c := &collector{cache: cache}
	constant := prometheus.Labels{"cache": Label(name)}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		d := prometheus.NewDesc("tiercache_"+name, help, labels, constant)
		c.all = append(c.all, d)
		return d
	}
	c.reads = desc("reads_total", "Keys read, by the tier that answered: l1 (this process), l2 (a shard) or none.", "tier")
	c.loads = desc("loads_total", "Calls of loaders.")
	c.loadErrors = desc("load_errors_total", "Calls of loaders that failed. That there is nothing is no failure.")
	c.blindLoads = desc("blind_loads_total", "Loads without a marker, since the shard did not answer: nothing was stored on it.")
	c.refreshes = desc("refreshes_total", "Loads that began ahead of a value's end.")
	c.awaited = desc("awaited_total", "Values that another process loaded while this one waited.")
	c.copyHits = desc("copy_hits_total", "Keys read from copies of hot keys, beside their owners.")
	c.inherited = desc("inherited_total", "Keys that the shard which had them before the list of shards changed answered for their present one.")
	c.promotions = desc("promotions_total", "Times that this process had copies of a hot key made.")
	c.fills = desc("fills_total", "Loaded values, by what became of them on the shard: stored, or refused since the key was written meanwhile.", "outcome")
	c.corrupt = desc("corrupt_values_total", "Values on shards that could not be read, taken for misses: of another codec, cut short, or foreign.")
	c.voided = desc("voided_values_total", "Values on shards that were misses since a tag of theirs was invalidated, or its key evicted.")
	c.stale = desc("stale_values_total", "Values of before that were given since a load failed, or took too long.")
	c.localEntries = desc("local_entries", "Entries in this process, about.")
	c.localRefused = desc("local_refused_total", "Values kept out of this process since a later write of their key was known.")

	c.commands = desc("shard_commands_total", "Commands sent to the shard.", "shard")
	c.commandErrors = desc("shard_command_errors_total", "Commands that failed.", "shard")
	c.commandsRefused = desc("shard_commands_refused_total", "Commands not sent, since the shard had failed of late.", "shard")
	c.duration = desc("shard_command_duration_seconds", "Time to the answer of commands that were answered.", "shard")
	c.synced = desc("shard_synced", "1 while values of the shard are held in this process, 0 while the shard has to be asked for each.", "shard")
	c.lag = desc("shard_notice_lag_seconds", "How long the last heartbeat took behind the shard's notices of writes.", "shard")
	c.resets = desc("shard_resets_total", "Times that all this process held of the shard ceased to count: the subscription was lost, a notice did not arrive (gap), or the shard lost its data or came with other data (epoch).", "shard", "reason")
	return c
}

type collector struct {
	cache Source
	all   []*prometheus.Desc

	reads, loads, loadErrors, blindLoads, refreshes, awaited, fills                     *prometheus.Desc
	copyHits, inherited, promotions, corrupt, voided, stale, localEntries, localRefused *prometheus.Desc
	commands, commandErrors, commandsRefused, duration, synced, lag, resets             *prometheus.Desc
}

// Describe is prometheus.Collector's.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.all {
		out <- d
	}
}

// Collect is prometheus.Collector's.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s := c.cache.Stats()
	count(c.reads, s.LocalHits, "l1")
	count(c.reads, s.ShardHits, "l2")
	count(c.reads, s.Misses, "none")
	count(c.loads, s.Loads)
	count(c.loadErrors, s.LoadErrors)
	count(c.blindLoads, s.BlindLoads)
	count(c.refreshes, s.Refreshes)
	count(c.awaited, s.Awaited)
	count(c.copyHits, s.CopyHits)
	count(c.inherited, s.Inherited)
	count(c.promotions, s.Promotions)
	count(c.fills, s.Fills, "stored")
	count(c.fills, s.RefusedFills, "refused")
	count(c.corrupt, s.Corrupt)
	count(c.voided, s.Voided)
	count(c.stale, s.Stale)
	gauge(c.localEntries, float64(s.LocalEntries))
	count(c.localRefused, s.RefusedLocal)
	for _, shard := range s.Shards {
		name := Label(shard.Name)
		count(c.commands, shard.Calls, name)
		count(c.commandErrors, shard.Errors, name)
		count(c.commandsRefused, shard.Refused, name)
		answered := shard.Faster[len(shard.Faster)-1]
		out <- prometheus.MustNewConstHistogram(c.duration, answered, shard.Took.Seconds(), buckets(&shard), name)
		synced := 0.0
		if shard.Synced {
			synced = 1
		}
		gauge(c.synced, synced, name)
		gauge(c.lag, shard.Lag.Seconds(), name)
		count(c.resets, shard.Lost, name, "lost")
		count(c.resets, shard.Gaps, name, "gap")
		count(c.resets, shard.Epochs, name, "epoch")
	}
}

// Buckets are of 2^fastest to 2^slowest ns: 16 us to 8.6 s.
const fastest, slowest = 14, 33

func buckets(s *tiercache.ShardStats) map[float64]uint64 {
	b := make(map[float64]uint64, slowest-fastest+1)
	for i := fastest; i <= slowest; i++ {
		b[float64(uint64(1)<<i)/1e9] = s.Faster[i]
	}
	return b
}

// Label is a name as the metrics carry it: itself where it is UTF-8, as a label has
// to be, and else quoted, so that different names stay different.
func Label(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}
