package proxy

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/tiercache"
)

const (
	sampleEvery = time.Second
	samples     = 120 // that are kept
	window      = 10  // seconds that percentiles and rates are over
)

// watch follows what is done each second.
type watch struct {
	started time.Time
	remaps  []Remap

	mu       sync.Mutex
	history  []sample // the last is the newest
	requests uint64
	failed   uint64
	latency  *hdrhistogram.WindowedHistogram // us
}

// sample is what the counts were at a moment.
type sample struct {
	at                 time.Time
	requests, failed   uint64
	cache              tiercache.Stats
	p50, p95, p99, max float64 // ms, of the window
}

func newWatch(stats tiercache.Stats, r *ring.Ring) *watch {
	now := time.Now()
	w := &watch{
		started: now, remaps: remaps(r),
		latency: hdrhistogram.NewWindowed(window, 1, int64(time.Minute/time.Microsecond), 2),
	}
	w.history = []sample{{at: now, cache: stats}}
	return w
}

// observe counts a request for the cache.
func (w *watch) observe(took time.Duration, failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	if failed {
		w.failed++
	}
	// A longer one than a minute is counted as a minute.
	_ = w.latency.Current.RecordValue(min(max(took.Microseconds(), 1), int64(time.Minute/time.Microsecond)))
}

// run samples until ctx ends.
func (w *watch) run(ctx context.Context, p *Proxy) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			w.take(p.cache.Stats(), now)
		}
	}
}

// take takes a sample.
func (w *watch) take(stats tiercache.Stats, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.latency.Merge()
	ms := func(us int64) float64 { return float64(us) / 1000 }
	w.history = append(w.history, sample{
		at: now, requests: w.requests, failed: w.failed, cache: stats,
		p50: ms(h.ValueAtQuantile(50)), p95: ms(h.ValueAtQuantile(95)), p99: ms(h.ValueAtQuantile(99)), max: ms(h.Max()),
	})
	if over := len(w.history) - samples - 1; over > 0 {
		w.history = append(w.history[:0], w.history[over:]...)
	}
	w.latency.Rotate()
}

// past returns the samples, oldest first.
func (w *watch) past() []sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]sample(nil), w.history...)
}

// Snapshot is the state of a proxy and its cache. Counts are since the start.
type Snapshot struct {
	At            time.Time       `json:"at"`
	UptimeSeconds float64         `json:"uptimeSeconds"`
	Requests      RequestCounts   `json:"requests"`
	HitRatio      float64         `json:"hitRatio"` // of all reads; 0 before the first
	Reads         ReadCounts      `json:"reads"`
	LatencyMS     Percentiles     `json:"latencyMs"` // of requests for keys, over the last 10 s
	LocalEntries  int             `json:"localEntries"`
	Shards        []ShardSnapshot `json:"shards"`
	HotKeys       []HotKey        `json:"hotKeys"` // most read first, at most 10
	Ring          RingSnapshot    `json:"ring"`
}

// HotKey is a key that is read often from its shard: what this process answers from
// L1 is not counted.
type HotKey struct {
	Key       string   `json:"key"`
	Shards    []string `json:"shards"`    // between which its reads are spread, its owner first
	PerSecond float64  `json:"perSecond"` // reads, over the last 5 s
}

// hotKeys is how many a Snapshot has.
const hotKeys = 10

func (p *Proxy) hottest() []HotKey {
	found := []HotKey{}
	for _, k := range p.cache.HotKeys() {
		if len(found) == hotKeys {
			break
		}
		found = append(found, HotKey{k.Key, k.Shards, float64(k.Reads) / 5})
	}
	return found
}

// RequestCounts are requests for keys.
type RequestCounts struct {
	Total     uint64  `json:"total"`
	Failed    uint64  `json:"failed"` // with a 5xx
	InFlight  int     `json:"inFlight"`
	PerSecond float64 `json:"perSecond"` // over the last 10 s
}

// ReadCounts are keys that were read, by who answered.
type ReadCounts struct {
	L1     uint64 `json:"l1"`
	L2     uint64 `json:"l2"`
	Misses uint64 `json:"misses"`
}

// Percentiles are in ms, right to a hundredth of themselves.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// ShardSnapshot is one shard.
type ShardSnapshot struct {
	Name      string    `json:"name"`
	State     string    `json:"state"` // "serving", "out" or "returning"
	Since     time.Time `json:"since"` // when that began
	Share     float64   `json:"share"` // of all keys that there could be
	Commands  uint64    `json:"commands"`
	Errors    uint64    `json:"errors"`  // commands that failed
	Refused   uint64    `json:"refused"` // not sent, since the shard had failed of late
	PerSecond float64   `json:"perSecond"`
	P50MS     float64   `json:"p50Ms"` // of commands, since the start
	P99MS     float64   `json:"p99Ms"`
	Bus       BusCounts `json:"bus"`
}

// BusCounts are about the notices of a shard's writes.
type BusCounts struct {
	LagMS float64 `json:"lagMs"` // of the last heartbeat behind them

	// Reasons for which what L1 held of the shard ceased to count.
	Lost   uint64 `json:"lost"`   // the subscription was lost, or silent
	Gaps   uint64 `json:"gaps"`   // a notice did not arrive
	Epochs uint64 `json:"epochs"` // the shard came with other data, or none
}

// RingSnapshot is where keys are.
type RingSnapshot struct {
	Fingerprint string  `json:"fingerprint"` // the same in all processes that place keys alike
	Remaps      []Remap `json:"remaps"`      // measured on 20,000 keys
}

// Snapshot returns the present state.
func (p *Proxy) Snapshot() Snapshot {
	now, stats, states, past := time.Now(), p.cache.Stats(), p.shards(), p.watch.past()
	newest := past[len(past)-1]
	oldest := past[max(0, len(past)-1-window)]
	per := rate(newest.at.Sub(oldest.at))
	p.watch.mu.Lock()
	requests, failed := p.watch.requests, p.watch.failed
	p.watch.mu.Unlock()
	s := Snapshot{
		At: now, UptimeSeconds: now.Sub(p.watch.started).Seconds(),
		Requests:     RequestCounts{Total: requests, Failed: failed, InFlight: len(p.slots), PerSecond: per(newest.requests, oldest.requests)},
		Reads:        ReadCounts{stats.LocalHits, stats.ShardHits, stats.Misses},
		LatencyMS:    Percentiles{newest.p50, newest.p95, newest.p99, newest.max},
		LocalEntries: stats.LocalEntries,
		HotKeys:      p.hottest(),
		Ring:         RingSnapshot{hex16(p.cache.Ring().Fingerprint()), p.watch.remaps},
	}
	if all := s.Reads.L1 + s.Reads.L2 + s.Reads.Misses; all > 0 {
		s.HitRatio = float64(s.Reads.L1+s.Reads.L2) / float64(all)
	}
	shares := p.cache.Ring().Shares()
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	for i, c := range stats.Shards {
		s.Shards = append(s.Shards, ShardSnapshot{
			Name: c.Name, State: states[i].State, Since: states[i].Since, Share: shares[i],
			Commands: c.Calls, Errors: c.Errors, Refused: c.Refused,
			PerSecond: per(newest.cache.Shards[i].Calls, oldest.cache.Shards[i].Calls),
			P50MS:     ms(c.P50), P99MS: ms(c.P99),
			Bus: BusCounts{ms(c.Lag), c.Lost, c.Gaps, c.Epochs},
		})
	}
	return s
}

// hex16 is a fingerprint as text.
func hex16(n uint64) string { return fmt.Sprintf("%016x", n) }

// rate divides differences of counts by a time.
func rate(d time.Duration) func(now, before uint64) float64 {
	return func(now, before uint64) float64 {
		if d <= 0 {
			return 0
		}
		return float64(now-before) / d.Seconds()
	}
}
