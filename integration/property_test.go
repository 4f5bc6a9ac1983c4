package integration

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/conformance/prop"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
)

// Random sequences of writes, damage and repair, and of reshards between them, against a plain set: through each client, and each
// way of writing in turn. The cluster is the test's own, for its slots end up anywhere.
func TestProperties(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	properties(t, c, firstSeed(t, 1), "SHARDKIT_SEED={seed} go test -race -run '^TestProperties$' ./integration")
}

// TestSoak tries fresh seeds for $SHARDKIT_SOAK, beginning with $SHARDKIT_SEED if that is set: see make soak.
func TestSoak(t *testing.T) {
	text := os.Getenv("SHARDKIT_SOAK")
	if text == "" {
		t.Skip("takes as long as SHARDKIT_SOAK says, such as 10m")
	}
	soak, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("SHARDKIT_SOAK: %v", err)
	}
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	first, runs := firstSeed(t, rand.Uint64N(1<<52)), 0
	for start := time.Now(); !t.Failed() && (runs == 0 || time.Since(start) < soak); runs++ {
		properties(t, c, first+uint64(runs), "make soak SECONDS=1 SEED={seed}")
	}
	t.Logf("%d runs, seeds from %d on", runs, first)
}

// firstSeed is $SHARDKIT_SEED, or the one given where that is not set.
func firstSeed(t *testing.T, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv("SHARDKIT_SEED")
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("SHARDKIT_SEED: %v", err)
	}
	return n
}

func properties(t *testing.T, c *harness.Cluster, seed uint64, again string) {
	t.Helper()
	for i, client := range clients {
		ids := []string{"PR-201", "PR-202"}
		if i == 0 {
			ids = append(ids, "PR-003") // asks the servers past the client
		}
		rung := rungs[(int(seed%uint64(len(rungs)))+i*len(rungs)/2)%len(rungs)]
		report, err := conformance.Execute(t.Context(), conformance.Target{
			Name: client.name,
			Backend: func(_ context.Context, to conformance.Connection) (replset.Backend, func(), error) {
				b, err := client.dial(t, to.Addrs, login{}, to.Patience)
				if err != nil {
					return nil, nil, err
				}
				return rung.wrap(b), nil, nil
			},
			Cases: prop.Cases(), Only: ids, Cluster: c, Seed: seed,
			Rerun: again,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report.Cases {
			switch {
			case r.Reason == conformance.ReasonNotSelected:
			case r.Status == conformance.StatusPass:
				t.Logf("%s, %s: %s %s, seed %d, %.1f s", client.name, rung.name, r.ID, r.Name, seed, r.Took)
			default:
				t.Errorf("%s, %s: %s %s: %s (%s)\nthe requirement: %s\nseen: %s\n%.1000s\nagain: %s",
					client.name, rung.name, r.ID, r.Name, r.Status, r.Reason, r.Requirement, r.Seen, r.State, r.Rerun)
			}
		}
	}
}
