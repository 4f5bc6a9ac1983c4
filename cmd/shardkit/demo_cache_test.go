package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// performed runs a demo as JSON, into told, and as words, each within its time.
func performed(t *testing.T, told any, args ...string) (words string) {
	t.Helper()
	harnesstest.Shards(t, harness.Options{Shards: 1, Private: true}) // skips where there is no server
	t.Setenv("TMPDIR", t.TempDir())
	start := time.Now()
	got := shardkit(t, t.Context(), "", append(append([]string{"demo"}, args...), "--json")...)
	if err := json.Unmarshal([]byte(got.out), told); err != nil || got.code != exitOK || strings.Count(got.out, "\n") != 1 {
		t.Fatalf("got %+v, %v; want one line of JSON", got, err)
	}
	got = shardkit(t, t.Context(), "", append([]string{"demo"}, args...)...)
	if got.code != exitOK || got.err != "" {
		t.Fatalf("got %+v", got)
	}
	if took := time.Since(start); took > 40*time.Second {
		t.Errorf("two performances took %v, of 20 s each", took)
	}
	for line := range strings.Lines(got.out) {
		if len(line) > 131 {
			t.Errorf("a line is %d wide: %q", len(line), line)
		}
	}
	noFolders(t)
	return got.out
}

func TestDemoFailover(t *testing.T) {
	var f failedOver
	words := performed(t, &f, "failover")
	if f.Keys != 300 || f.Victim < 50 || f.Victim > 150 {
		t.Errorf("got %+v, want 300 keys, of which a third is on the shard", f)
	}
	if f.Old != 0 || f.New+f.None != 2*f.Victim {
		t.Errorf("got %+v, want every key read by both programs, and none of them old", f)
	}
	if f.Failed == 0 || f.Failed > f.Tried || f.FailedLater > f.TriedLater/2 || f.TriedLater != f.Victim {
		t.Errorf("got %+v, want writes to fail until the shard is out, and then to be taken", f)
	}
	for _, want := range []string{"shard-2 is killed", "both programs know that it is out", "0 times version 1"} {
		if !strings.Contains(words, want) {
			t.Errorf("it does not say %q:\n%s", want, words)
		}
	}
}

func TestDemoHotkeys(t *testing.T) {
	var f hotFound
	words := performed(t, &f, "hotkeys", "--duration", "500ms")
	if f.Key != "item:0" || len(f.Shards) != 1+hotCopies || len(f.Load) != hotShards {
		t.Fatalf("got %+v, want item:0 on %d shards of %d", f, 1+hotCopies, hotShards)
	}
	sum, owner := [2]float64{}, hotLoad{}
	for _, l := range f.Load {
		sum[0], sum[1] = sum[0]+l.Alone, sum[1]+l.With
		if l.Shard == f.Shards[0] {
			owner = l
		}
	}
	if sum[0] < 0.999 || sum[0] > 1.001 || sum[1] < 0.999 || sum[1] > 1.001 {
		t.Errorf("the parts add up to %v", sum)
	}
	// The first key is more than a third of all reads; two thirds of these go elsewhere.
	if owner.Alone < 0.3 || owner.With > owner.Alone-0.1 {
		t.Errorf("the owner has %.2f of the commands without copies and %.2f with them", owner.Alone, owner.With)
	}
	if f.Old != 0 || f.Writes == 0 {
		t.Errorf("%d of %d writes were followed by an old value", f.Old, f.Writes)
	}
	for _, want := range []string{"owns item:0", "copies of item:0", "if all were alike"} {
		if !strings.Contains(words, want) {
			t.Errorf("it does not say %q:\n%s", want, words)
		}
	}
	if bad := shardkit(t, t.Context(), "", "demo", "hotkeys", "--duration", "1ms"); bad.code != exitUsage || !slices.Contains(strings.Fields(bad.err), "--duration") {
		t.Errorf("got %+v, want to be told of --duration", bad)
	}
}
