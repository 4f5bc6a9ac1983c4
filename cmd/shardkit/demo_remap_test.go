package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestDemoRemap(t *testing.T) {
	harnesstest.Shards(t, harness.Options{Shards: 1, Private: true}) // skips where there is no server
	t.Setenv("TMPDIR", t.TempDir())
	const keys = 5000
	got := shardkit(t, t.Context(), "", "demo", "remap", "--keys", "5000", "--json")
	var told struct {
		Keys    int
		Changes []struct {
			Change string
			Least  float64
			Ways   []struct {
				Way                   string
				Found, Lost, Needless int
			}
		}
	}
	if err := json.Unmarshal([]byte(got.out), &told); err != nil || got.code != exitOK || told.Keys != keys || len(told.Changes) != 2 {
		t.Fatalf("got %+v, %v; want one object with two changes", got, err)
	}
	// The keys and the placements are always the same, and so is what is lost.
	for _, c := range told.Changes {
		ring, modulo := c.Ways[0], c.Ways[1]
		if ring.Way != "ring" || modulo.Way != "modulo" || ring.Found+ring.Lost != keys || modulo.Found+modulo.Lost != keys {
			t.Errorf("%s: got %+v, want %d keys by each way", c.Change, c.Ways, keys)
		}
		if lost := float64(ring.Lost) / keys; lost < c.Least-0.03 || lost > c.Least+0.03 || ring.Needless != 0 {
			t.Errorf("%s: the ring lost %v, %d of them needlessly; want about %v, and none", c.Change, lost, ring.Needless, c.Least)
		}
		if modulo.Lost < 2*ring.Lost || modulo.Needless == 0 {
			t.Errorf("%s: modulo lost %d, the ring %d", c.Change, modulo.Lost, ring.Lost)
		}
	}
	got = shardkit(t, t.Context(), "", "demo", "remap", "--keys", "1000")
	if got.code != exitOK || got.err != "" || len(regexp.MustCompile(`(?m)^ +(ring|modulo) +\d+ +\d+ +\d+\.\d %`).FindAllString(got.out, -1)) != 4 {
		t.Errorf("got %+v, want a line for each way and change", got)
	}
	for line := range strings.Lines(got.out) {
		if len(line) > 121 {
			t.Errorf("a line is %d wide: %q", len(line), line)
		}
	}
	noFolders(t)
	oneError(t, shardkit(t, t.Context(), "", "demo", "remap", "--keys", "1"), exitUsage, "--keys")
}
