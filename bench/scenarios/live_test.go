package scenarios

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/slotmap"
)

// noKeys fails if a run left a key behind.
func noKeys(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for _, n := range c.Nodes() {
		keys, err := n.Do(t.Context(), "KEYS", "skb*")
		if list, ok := keys.([]any); err != nil || !ok || len(list) > 0 {
			t.Errorf("%s: %d keys are left, such as %.100q, %v", n, len(list), keys, err)
		}
	}
}

// written is how many replicas a test writes under a name.
func written(tg *Target, name string) float64 { return float64(len(tg.slots(name))) }

func runParts(t *testing.T, tg *Target, o *Options, names ...string) []*bench.Result {
	t.Helper()
	parts, err := Select(false, names...)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range parts {
		// Counts are the same from one operation to the next, but beside heartbeats.
		if p.Name != "cache-get" {
			parts[i].count = min(p.count, 10)
		}
	}
	results, err := Run(t.Context(), parts, tg, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(parts) {
		t.Fatalf("got %d results for %d parts", len(results), len(parts))
	}
	for i, r := range results {
		if r.Scenario != parts[i].Name {
			t.Errorf("result %d is of %s, want %s", i, r.Scenario, parts[i].Name)
		}
		for _, v := range r.Variants {
			if v.Errors != 0 || v.Response.Count == 0 {
				t.Errorf("%s, %s: %d operations, %d errors %v; want some and none", r.Scenario, v.Name, v.Response.Count, v.Errors, v.Failures)
			}
		}
	}
	return results
}

func variantNames(r *bench.Result) string {
	var out []string
	for _, v := range r.Variants {
		out = append(out, v.Name)
	}
	return strings.Join(out, " ")
}

func TestWriters(t *testing.T) {
	tg, c := target(t)
	tg.Prefix = "skbwriters"
	var told []Progress
	o := &Options{Duration: 100 * time.Millisecond, Rounds: 5, Seed: 11, Progress: func(p Progress) { told = append(told, p) }}
	results := runParts(t, tg, o, "publish-20-strings", "delta")
	noKeys(t, c)
	for i, want := range []struct {
		commands, bytesFewer float64
	}{
		{3 * written(tg, "skbwriters"), 5}, {2 * written(tg, "skbwritersb"), 3},
	} {
		r := results[i]
		if got := variantNames(r); got != "shardkit go-pipelines go-cluster shardkit-other shardkit'" {
			t.Errorf("%s: got variants %q", r.Scenario, got)
		}
		if r.Comparison(byHand, "response_p50") == nil || r.Settings.Seed != 11 {
			t.Errorf("%s: no comparison, or seed %d, want one and 11", r.Scenario, r.Settings.Seed)
		}
		hand, lib := r.Variant(byHand).Counters, r.Variant(ours).Counters
		if hand[bench.RedisCommands] != want.commands {
			t.Errorf("%s by hand: got %v commands, want %v", r.Scenario, hand[bench.RedisCommands], want.commands)
		}
		if fewer := hand[bench.RedisBytesIn] / lib[bench.RedisBytesIn]; fewer < want.bytesFewer {
			t.Errorf("%s: the library sends 1/%.1f of the bytes, want 1/%v", r.Scenario, fewer, want.bytesFewer)
		}
	}
	if len(told) == 0 || told[0].Number != 1 || told[len(told)-1].Part != "delta" || told[len(told)-1].Done != 1 {
		t.Errorf("progress: got %d, first %+v, last %+v; want the first part's to begin with, and the end", len(told), told[:min(1, len(told))], told[max(0, len(told)-1):])
	}
	if !slices.IsSortedFunc(told, func(a, b Progress) int { return int(math.Copysign(1, a.Done-b.Done+1e-300)) }) {
		t.Error("progress went back")
	}
}

// Each way down the ladder asks more of the servers; that each is the way it says is checked by the part itself.
func TestRungs(t *testing.T) {
	tg, c := target(t)
	tg.some = slices.DeleteFunc(tg.some, func(slot uint16) bool { return slot%256 != 0 })
	for _, r := range runParts(t, tg, &Options{Duration: 100 * time.Millisecond, Rounds: 5}, "rungs") {
		if got := variantNames(r); got != "node-script key-script transaction node-script'" {
			t.Errorf("%s: got variants %q", r.Scenario, got)
		}
		reads := func(name string) float64 { return r.Variant(name).Counters[bench.RedisReads] }
		sent := func(name string) float64 { return r.Variant(name).Counters[bench.RedisBytesIn] }
		if !(sent(byNodeScript) < sent(byKeyScript)) || !(reads(byKeyScript) < reads(byTransaction)) {
			t.Errorf("%s: got %v and %v bytes, %v and %v reads; want more from one way to the next", r.Scenario,
				sent(byNodeScript), sent(byKeyScript), reads(byKeyScript), reads(byTransaction))
		}
	}
	noKeys(t, c)
}

func TestVerify(t *testing.T) {
	tg, c := target(t)
	tg.some = slices.DeleteFunc(tg.some, func(slot uint16) bool { return slot%128 != 0 })
	r := runParts(t, tg, &Options{Duration: 100 * time.Millisecond, Rounds: 5}, "verify")[0]
	noKeys(t, c)
	if got := variantNames(r); got != "shardkit sample smembers shardkit-other shardkit'" {
		t.Errorf("got variants %q", got)
	}
	hand := r.Variant("smembers").Counters
	if hand[bench.RedisCommands] != written(tg, "skb") || r.Variant(ours).Counters[bench.RedisBytesOut] > hand[bench.RedisBytesOut]/10 {
		t.Errorf("by hand %v, by Verify %v; want a command for each replica, and a tenth of the bytes at most", hand, r.Variant(ours).Counters)
	}
}

func TestCache(t *testing.T) {
	s := harnesstest.Shards(t, harness.Options{Shards: 3, Private: true})
	tg := &Target{}
	other := Adapter{Name: "other"}
	for _, addr := range s.Addrs() {
		client := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = client.Close() })
		tg.Shards, other.Shards = append(tg.Shards, client), append(other.Shards, goredis.NewShard(client))
	}
	tg.Others = []Adapter{other, {Name: "of-clusters-alone"}}
	results := runParts(t, tg, &Options{Duration: 100 * time.Millisecond, Rounds: 5}, "cache")
	for i, want := range []string{
		"bare shardkit process bare-other shardkit-other bare'", "bare shardkit shardkit-other bare'", "bare shardkit process shardkit-other bare'",
		"bare shardkit bare-other shardkit-other bare'", "written shardkit written'",
	} {
		if got := variantNames(results[i]); got != want {
			t.Errorf("%s: got variants %q, want %q", results[i].Scenario, got, want)
		}
	}
	for variant, want := range map[string]float64{bare: 1, ours: 1, "process": 0, other.of(bare): 1, other.of(ours): 1} {
		if got := results[0].Variant(variant).Counters[bench.RedisReads]; math.Abs(got-want) > 0.2 { // heartbeats are among them
			t.Errorf("get, %s: got %v round trips, want %v", variant, got, want)
		}
	}
	for _, n := range s.Nodes() {
		if v, err := n.Do(t.Context(), "DBSIZE"); err != nil || v != int64(0) {
			t.Errorf("%v keys left, %v; want none", v, err)
		}
	}
	if _, err := Run(t.Context(), []Part{onePart(t, "cache-get")}, nil, nil); err == nil || !strings.Contains(err.Error(), "Target with Shards") {
		t.Errorf("without servers: got %v", err)
	}
}

func TestReads(t *testing.T) {
	tg, c := target(t)
	results := runParts(t, tg, &Options{Duration: 100 * time.Millisecond, Rounds: 5}, "intersect-100", "count")
	noKeys(t, c)
	for _, r := range results {
		if got := variantNames(r); got != "bare shardkit fetch-both bare-other shardkit-other bare'" {
			t.Errorf("%s: got variants %q", r.Scenario, got)
		}
		// The library's are MULTI, GET and SCARD of the proof, the question, EXEC.
		for variant, want := range map[string]float64{bare: 1, ours: 5, fetched: 2, "bare-other": 1, "shardkit-other": 5} {
			if got := r.Variant(variant).Counters[bench.RedisCommands]; got != want {
				t.Errorf("%s, %s: got %v commands, want %v", r.Scenario, variant, got, want)
			}
		}
		if back := r.Variant(fetched).Counters[bench.RedisBytesOut]; back < 100*20 {
			t.Errorf("%s: fetching both sets brought %v bytes", r.Scenario, back)
		}
	}

	open := runParts(t, tg, &Options{Duration: 500 * time.Millisecond, Rate: 300, Workers: 8}, "intersect-100")[0]
	if l := open.Settings.Load; l.Mode != bench.Open || l.Rate != 300 || l.Workers != 8 || open.Comparison(ours, "service_p50") == nil {
		t.Errorf("with a rate: got load %+v, want an open loop of 300 a second by 8, and service times compared", l)
	}
}

// elsewhere is how many SADDs the masters have seen, other than the one that reader-p99-one-master writes to.
func elsewhere(t *testing.T, c *harness.Cluster) (sadds int64) {
	t.Helper()
	for _, n := range c.Nodes() {
		if n.Addr() == slices.Min(c.Addrs()) {
			continue
		}
		text, err := n.Do(t.Context(), "INFO", "commandstats")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text.(string)) {
			var calls int64
			if _, err := fmt.Sscanf(line, "cmdstat_sadd:calls=%d,", &calls); err == nil {
				sadds += calls
			}
		}
	}
	return sadds
}

func TestReader(t *testing.T) {
	tg, c := target(t)
	tg.Prefix = "skbreader"
	before := elsewhere(t, c)
	r := runParts(t, tg, &Options{Duration: 1200 * time.Millisecond, Rounds: 5, Seed: 3}, "reader-p99-one-master")[0]
	noKeys(t, c)
	if now := elsewhere(t, c); now != before {
		t.Errorf("%d SADDs on the other masters, want none", now-before)
	}
	if got := variantNames(r); got != "shardkit go-pipelines shardkit-short shardkit-other idle shardkit'" {
		t.Fatalf("got variants %q", got)
	}
	for _, v := range r.Variants {
		// 5 stretches of 40 ms at 1000 a second.
		if v.Response.Count != 5*40 {
			t.Errorf("%s: got %d reads, want %d", v.Name, v.Response.Count, 5*40)
		}
		if writes := v.Counters[PublishTime]; (writes > 0) != (v.Name != nobody) {
			t.Errorf("%s: a publish took %v ms", v.Name, writes)
		}
		if h, err := v.Response.Histogram(); err != nil || h.TotalCount() != v.Response.Count {
			t.Errorf("%s: the histogram does not hold the %d reads: %v", v.Name, v.Response.Count, err)
		}
		for _, metric := range []string{"response_p50", "response_p99"} {
			if cmp := r.Comparison(v.Name, metric); (cmp == nil) != (v.Name == ours) || cmp != nil && (cmp.Rounds != 5 || cmp.Low > cmp.Ratio || cmp.High < cmp.Ratio) {
				t.Errorf("%s: %s is compared as %+v", v.Name, metric, cmp)
			}
		}
	}
	if r.Settings.Rounds != 5 || r.Settings.Confidence != 0.9375 || r.Settings.Load.Rate != readerRate {
		t.Errorf("settings: %+v", r.Settings)
	}
	if l := r.Generator.Lateness; l.Count != 5*40 || r.Generator.Intended != 30*40 {
		t.Errorf("the generator: %+v, want the lateness of one variant's reads", r.Generator)
	}
	var b bytes.Buffer
	if err := errors.Join(WriteSummary(&b, []*bench.Result{r}), r.WriteTable(&b), r.WriteHDRLog(&b)); err != nil || !strings.Contains(b.String(), "ms a publish") || !strings.Contains(b.String(), "Tag=idle/get,") {
		t.Errorf("%v; no publish time, or no log, in\n%s", err, b.String())
	}
}

func TestReaderWithoutAWorkingProcess(t *testing.T) {
	tg, c := target(t)
	part := []Part{onePart(t, "reader-p99-one-master")}
	addrs := strings.Join(c.Addrs(), ",")
	for _, tc := range []struct {
		worker func(Part) *exec.Cmd
		want   string
	}{
		{nil, "give the Target a Worker"},
		{func(Part) *exec.Cmd { return exec.Command("/does/not/exist") }, "no such file"},
		{func(Part) *exec.Cmd { return build(t, "delta", addrs, "")() }, "not \"reader-p99-one-master\""},
		{func(p Part) *exec.Cmd { return build(t, p.Name, addrs, "dies")() }, "has ended: out of memory"},
	} {
		tg.Worker = tc.worker
		_, err := Run(t.Context(), part, tg, &Options{Duration: time.Second, Rounds: 5})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
		if tc.want != "has ended: out of memory" { // it had no chance to remove what it reads
			noKeys(t, c)
		}
	}
	for _, n := range c.Nodes() {
		if _, err := n.Do(t.Context(), "FLUSHALL"); err != nil {
			t.Error(err)
		}
	}
}

func TestInterrupted(t *testing.T) {
	tg, c := target(t)
	for _, tc := range []struct {
		part, then string
		cancelAt   func(Progress) bool
		partial    bool // something of the first part was measured
	}{
		{"publish-20-strings", "delta", func(p Progress) bool { return p.Done > 0.08 }, true},
		{"delta", "publish-20-strings", func(p Progress) bool { return p.Doing == "set-up" }, false},
		{"reader-p99-all-masters", "delta", func(p Progress) bool { return p.Done > 0.6*30/(30+15) }, true},
	} {
		t.Run(tc.part, func(t *testing.T) {
			parts, err := Select(false, tc.part, tc.then)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			before := elsewhere(t, c)
			o := &Options{Duration: 600 * time.Millisecond, Rounds: 5, Progress: func(p Progress) {
				if tc.cancelAt(p) {
					cancel()
				}
			}}
			results, err := Run(ctx, parts, tg, o)
			if !errors.Is(err, bench.ErrInterrupted) || !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want ErrInterrupted and context.Canceled", err)
			}
			if len(results) != 2 {
				t.Fatalf("got %d results, want one for each part", len(results))
			}
			for i, r := range results {
				if !r.Is(bench.Partial) || r.Scenario != parts[i].Name {
					t.Errorf("%s: marks %v, want it to be partial", r.Scenario, r.Marks)
				}
			}
			if got := len(results[0].Variants) > 0 && results[0].Variants[0].Response.Count > 0; got != tc.partial {
				t.Errorf("measured some: %v, want %v: %+v", got, tc.partial, results[0].Variants)
			}
			if tc.partial && elsewhere(t, c) == before {
				t.Error("one master alone was written to")
			}
			if len(results[1].Variants) != 0 {
				t.Errorf("the second part has variants: %+v", results[1].Variants)
			}
			noKeys(t, c)
		})
	}
}

// Parts that write look at what came of it: a replica that is not as written last spoils the figures.
func TestCheckFindsAWrongReplica(t *testing.T) {
	tg, c := target(t)
	s := &stage{target: &Target{Client: tg.Client}} // all slots
	pipelines, err := newByHand(t.Context(), s.target, "skbcheck")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.target.removeReplicas(context.Background(), "skbcheck"); err != nil {
			t.Error(err)
		}
		for _, n := range c.Nodes() {
			if keys, err := n.Do(context.Background(), "KEYS", "skb*"); err != nil || len(keys.([]any)) > 0 {
				t.Errorf("left on %s: %v, %v", n, keys, err)
			}
		}
	})
	members := []string{"a", "b", "c"}
	if err := pipelines.publish(t.Context(), boxed(members)); err != nil {
		t.Fatal(err)
	}
	if err := s.check(t.Context(), "skbcheck", members); err != nil {
		t.Errorf("right replicas: %v", err)
	}
	// Every slot, not only those that check reads.
	n := 0
	for _, node := range c.Nodes() {
		size, err := node.Do(t.Context(), "DBSIZE")
		if err != nil {
			t.Fatal(err)
		}
		n += int(size.(int64))
	}
	if n != slotmap.Slots {
		t.Errorf("got %d keys, want one in each slot", n)
	}
	if err := pipelines.apply(t.Context(), boxed([]string{"d"}), boxed([]string{"a", "b"})); err != nil {
		t.Fatal(err)
	}
	if err := s.check(t.Context(), "skbcheck", []string{"d", "c"}); err != nil {
		t.Errorf("after a delta: %v", err)
	}
	for _, broken := range []string{"SREM", "SADD"} {
		key := slotmap.KeyForSlot("skbcheck", 5*slotmap.Slots/checked)
		if err := tg.Client.Do(t.Context(), broken, key, "d", "c", "e").Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.check(t.Context(), "skbcheck", []string{"c", "d"}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("after %s: got %v, want an error that names %s", broken, err, key)
		}
	}
}

func TestUnreachableCluster(t *testing.T) {
	tg, c := target(t)
	_ = tg.Client.Close()
	parts, _ := Select(false, "publish-20-strings")
	results, err := Run(t.Context(), parts, tg, nil)
	if err == nil || len(results) > 0 {
		t.Errorf("with a closed client: got %d results and %v, want an error", len(results), err)
	}
	noKeys(t, c)
}

func TestReaderMerges(t *testing.T) {
	// Two runs of known latencies, put together, are as one run of both.
	var all []bench.Latency
	for _, ms := range []int{1, 3} {
		s := bench.Scenario{Name: "x", Variants: []bench.Variant{bench.Func("x", func(context.Context) error {
			time.Sleep(time.Duration(ms) * time.Millisecond)
			return nil
		})}}
		r, err := bench.Run(t.Context(), s, &bench.Options{Load: bench.Load{Ops: 20, SkipWarmUp: true}, SkipCounters: true})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Variants[0].Response)
	}
	got := merged(all)
	if got.Count != 40 || got.Min != min(all[0].Min, all[1].Min) || got.Max != max(all[0].Max, all[1].Max) {
		t.Errorf("got %+v of %+v", got, all)
	}
	if mean := (all[0].Mean + all[1].Mean) / 2; math.Abs(got.Mean-mean) > 1 {
		t.Errorf("got mean %v, want %v", got.Mean, mean)
	}
	if got.P50 < all[0].Min || float64(got.P50) > float64(all[0].Max)*1.001 || got.P99 < all[1].P50 {
		t.Errorf("got p50 %v and p99 %v, want the first among %v to %v, the second above %v", got.P50, got.P99, all[0].Min, all[0].Max, all[1].P50)
	}
}

func TestCompareRounds(t *testing.T) {
	stretch := func(ms ...int) stretches {
		var s stretches
		for _, n := range ms {
			s.rounds = append(s.rounds, bench.Latency{P99: time.Duration(n) * time.Millisecond})
		}
		return s
	}
	res := &bench.Result{
		Variants: []bench.VariantResult{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "a'"}},
		Settings: bench.Settings{Rounds: 5, Threshold: 0.1},
	}
	seen := []stretches{stretch(10, 20, 10, 10, 10), stretch(40, 60, 30, 30, 30), stretch(10, 10, 10, 11, 12), stretch(11, 21, 10, 9, 10)}
	all := compareRounds(res, seen, "response_p99", func(l bench.Latency) time.Duration { return l.P99 })
	var got []string
	for _, c := range all {
		got = append(got, fmt.Sprintf("%s %.2f %.2f-%.2f floor %.2f %s", c.Variant, c.Ratio, c.Low, c.High, c.Floor, c.Verdict))
	}
	want := []string{"a' 1.00 0.90-1.10 floor 0.11 unclear", "b 3.00 3.00-4.00 floor 0.11 slower", "c 1.00 0.50-1.20 floor 0.11 unclear"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
