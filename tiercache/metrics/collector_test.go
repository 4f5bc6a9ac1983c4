package metrics_test

import (
	"context"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
	"github.com/shardkit/shardkit/tiercache/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type stats tiercache.Stats

func (s stats) Stats() tiercache.Stats { return tiercache.Stats(s) }

// TestMetrics: each count is where it belongs, in its unit.
func TestMetrics(t *testing.T) {
	shard := tiercache.ShardStats{
		Name: "a\xff", Calls: 12, Errors: 2, Refused: 13, Lost: 14, Gaps: 15, Epochs: 16, Synced: true,
		Lag: 1500 * time.Millisecond, Took: 3 * time.Second,
	}
	for i := range shard.Faster {
		switch {
		case i >= 34: // one call took longer than all buckets
			shard.Faster[i] = 10
		case i >= 20: // 1.05 ms
			shard.Faster[i] = 9
		case i >= 10:
			shard.Faster[i] = 1
		}
	}
	c := metrics.NewCollector("users", stats{
		LocalHits: 1, ShardHits: 2, Misses: 3, Loads: 4, LoadErrors: 5, Fills: 6, RefusedFills: 7, BlindLoads: 8, RefusedLocal: 9,
		Corrupt: 10, Voided: 17, Stale: 18, Refreshes: 19, Awaited: 20, CopyHits: 21, Promotions: 22, Inherited: 23, LocalEntries: 11, Shards: []tiercache.ShardStats{shard, {Name: "b"}},
	})
	golden, err := os.Open("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer golden.Close()
	if err := testutil.CollectAndCompare(c, golden); err != nil {
		t.Error(err)
	}
	problems, err := testutil.CollectAndLint(c) // promlint
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
}

// TestComplete: a field of Stats that is added has to be a metric too, or be named
// here with the reason.
func TestComplete(t *testing.T) {
	without := map[string]string{
		"Shards": "its fields are", "Name": "a label",
		"P50": "the histogram tells, over any time", "P99": "the same", "Max": "the same",
		"Faster": "the histogram, in the other test", "Took": "the same",
	}
	value := func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Uint64:
			v.SetUint(7)
		case reflect.Int, reflect.Int64:
			v.SetInt(7e9)
		}
	}
	text := func(s tiercache.Stats) string {
		r := prometheus.NewPedanticRegistry()
		r.MustRegister(metrics.NewCollector("c", stats(s)))
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, f := range families {
			b.WriteString(f.String())
		}
		return b.String()
	}
	zero := text(tiercache.Stats{Shards: make([]tiercache.ShardStats, 1)})
	check := func(typ reflect.Type, field func(s *tiercache.Stats, i int) reflect.Value) {
		for i := range typ.NumField() {
			name := typ.Field(i).Name
			if without[name] != "" {
				continue
			}
			s := tiercache.Stats{Shards: make([]tiercache.ShardStats, 1)}
			value(field(&s, i))
			if text(s) == zero {
				t.Errorf("%v.%s is no metric", typ, name)
			}
		}
	}
	check(reflect.TypeFor[tiercache.Stats](), func(s *tiercache.Stats, i int) reflect.Value { return reflect.ValueOf(s).Elem().Field(i) })
	check(reflect.TypeFor[tiercache.ShardStats](), func(s *tiercache.Stats, i int) reflect.Value {
		return reflect.ValueOf(&s.Shards[0]).Elem().Field(i)
	})
}

// TestCaches: two caches in one registry, under load; not two of one name.
func TestCaches(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, name := range []string{"users", "pages"} {
		cache, err := tiercache.New[string](map[string]tiercache.Shard{"a": memory.New(nil), "b": memory.New(nil)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Close()
		if err := registry.Register(metrics.NewCollector(name, cache)); err != nil {
			t.Fatal(err)
		}
		if err := registry.Register(metrics.NewCollector(name, cache)); err == nil {
			t.Error("two collectors of one name were taken")
		}
		for _, key := range []string{"x", "y", "z"} {
			if err := cache.Set(context.Background(), key, "v"); err != nil {
				t.Fatal(err)
			}
			if _, err := cache.Get(context.Background(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "tiercache_reads_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "cache" {
					reads[l.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	if want := map[string]float64{"users": 3, "pages": 3}; !reflect.DeepEqual(reads, want) {
		t.Errorf("reads: got %v, want %v", reads, want)
	}
}

func ExampleNewCollector() {
	users, err := tiercache.New[string](map[string]tiercache.Shard{"a": memory.New(nil)}, nil)
	if err != nil {
		os.Stderr.WriteString(err.Error())
		return
	}
	defer users.Close()
	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	registry.MustRegister(metrics.NewCollector("users", users))
	// Output:
}
