package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/tiercache/soak"
)

func TestSoak(t *testing.T) {
	s, err := harness.StartShards(t.Context(), harness.Options{Shards: 1, Private: true})
	if err != nil {
		harnesstest.Skip(t, err)
	}
	s.Close()
	file := filepath.Join(t.TempDir(), "history")
	got := shardkit(t, t.Context(), "", "soak", "--seed", "3", "--duration", "3s", "--round", "2s", "--heartbeat", "200ms", "--processes", "2", "--margin", "5s", "--compare", "--json", "--history", file)
	var reports []soak.Report
	if err := json.Unmarshal([]byte(got.out), &reports); got.code != exitOK || err != nil {
		t.Fatalf("got %+v, %v", got, err)
	}
	if len(reports) != 2 || reports[0].Rounds != 2 || reports[0].Header.Subject != soak.Tiercache || reports[1].Header.Subject != soak.RingCache || reports[1].Rounds != 2 {
		t.Errorf("got %+v, want two rounds of each subject", reports)
	}
	for _, want := range []string{"round 1 of 2, seed 3:", "round 2 of 2, seed 4:"} {
		if strings.Count(got.err, want) != 2 {
			t.Errorf("got on stderr %q, want twice %q", got.err, want)
		}
	}

	// The history of the last round is judged again.
	for flag, word := range map[string]string{"--json": `"beyond":0`, "--markdown": "| reads beyond the bound | 0 |", "--history=": "largest staleness seen"} {
		again := shardkit(t, t.Context(), "", "soak", "--replay", file, flag)
		if again.code != exitOK || !strings.Contains(again.out, word) {
			t.Errorf("--replay %s: got %+v, want it to say %q", flag, again, word)
		}
	}
	h, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	history, err := soak.ReadHistory(h)
	if err != nil || history.Header.Seed != 4 {
		t.Fatalf("the history is of seed %d, %v, want 4", history.Header.Seed, err)
	}

	// One that violates something ends with exit code 1.
	history.Ops = append(history.Ops, soak.Op{Kind: soak.Get, Version: 99, Outcome: soak.OK})
	bad := filepath.Join(t.TempDir(), "bad")
	f, err := os.Create(bad)
	if err != nil {
		t.Fatal(err)
	}
	if err := history.Write(f); err != nil {
		t.Fatal(err)
	}
	f.Close()
	again := shardkit(t, t.Context(), "", "soak", "--replay", bad)
	if again.code != exitFailed || !strings.Contains(again.out, "unwritten") || !strings.Contains(again.err, "1 violations") {
		t.Errorf("a history with a violation: got %+v, want exit code 1", again)
	}
}

func TestSoakPlan(t *testing.T) {
	first := shardkit(t, t.Context(), "", "soak", "--plan", "--seed", "42")
	again := shardkit(t, t.Context(), "", "soak", "--plan", "--seed", "42")
	if first.code != exitOK || first.out != again.out || strings.Count(first.out, "\n") < 10 {
		t.Errorf("got %+v, and then %+v: want the same schedule", first, again)
	}
}

func TestSoakCannotRun(t *testing.T) {
	nothing := filepath.Join(t.TempDir(), "nothing")
	oneError(t, shardkit(t, t.Context(), "", "soak", "--replay", nothing), exitInconclusive, "--replay", "no such file")
	oneError(t, shardkit(t, t.Context(), "", "soak", "--faults", "flood"), exitUsage, "flood", "killproc")
	oneError(t, shardkit(t, t.Context(), "", "soak", "--duration", "0"), exitUsage, "--duration")
	oneError(t, shardkit(t, t.Context(), "", "soak", "--duration", "1s", "--server", "/does/not/exist"), exitInconclusive, "/does/not/exist")
}
