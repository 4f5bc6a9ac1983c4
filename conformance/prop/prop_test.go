package prop

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// target is shardkit's own, without servers. The table is a small one, for two are built a try.
func target(seed uint64) conformance.Target {
	race := ""
	if raceDetector { // which tries less
		race = "-race "
	}
	return conformance.Target{
		Name:       "shardkit",
		Serverless: true,
		Backend: func(context.Context, conformance.Connection) (replset.Backend, func(), error) {
			return memory.New(), nil, nil
		},
		Ring:     conformance.ShardkitRing(&ring.Options{Placement: ring.Table{Buckets: 1 << 14}}),
		Features: []conformance.Feature{Weights},
		Cases:    Cases(),
		Seed:     seed,
		Rerun:    "SHARDKIT_SEED={seed} go test " + race + "-run '^TestProperties$' ./conformance/prop",
	}
}

// execute runs the properties that need no server, or those named.
func execute(t *testing.T, target conformance.Target, only ...string) []conformance.Result {
	t.Helper()
	for _, c := range Cases() {
		if len(only) == 0 && c.Tier == conformance.Property && (target.Profiles == nil || c.Profile == target.Profiles[0]) {
			target.Only = append(target.Only, c.ID)
		}
	}
	target.Only = append(target.Only, only...)
	report, err := conformance.Execute(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	var results []conformance.Result
	for _, r := range report.Cases {
		if r.Reason != conformance.ReasonNotSelected {
			results = append(results, r)
		}
	}
	if len(results) != len(target.Only) {
		t.Fatalf("%d cases ran, want %q", len(results), target.Only)
	}
	return results
}

func pass(t *testing.T, target conformance.Target) {
	t.Helper()
	for _, r := range execute(t, target) {
		t.Logf("%s %s: %s in %.1f s", r.ID, r.Name, r.Status, r.Took)
		if r.Status != conformance.StatusPass {
			t.Errorf("%s %s: %s (%s)\nthe requirement: %s\nseen: %s\nagain: %s", r.ID, r.Name, r.Status, r.Reason, r.Requirement, r.Seen, r.Rerun)
		}
	}
}

// fixedSeed makes runs alike, but for the seed that somebody asks for; make soak tries fresh ones.
func fixedSeed(t *testing.T) uint64 {
	text := os.Getenv("SHARDKIT_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("SHARDKIT_SEED: %v", err)
	}
	return seed
}

func TestProperties(t *testing.T) { pass(t, target(fixedSeed(t))) }

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
	seed := rand.Uint64N(1 << 52)
	if os.Getenv("SHARDKIT_SEED") != "" {
		seed = fixedSeed(t)
	}
	runs := 0
	for start := time.Now(); !t.Failed() && (runs == 0 || time.Since(start) < soak); runs++ {
		target := target(seed + uint64(runs))
		target.Rerun = "make soak SECONDS=1 SEED={seed}"
		pass(t, target)
	}
	t.Logf("%d runs, seeds from %d on", runs, seed)
}

func TestPropertiesOfTheClassicRing(t *testing.T) {
	target := target(fixedSeed(t))
	target.Ring = conformance.ShardkitRing(&ring.Options{Placement: ring.Classic{}})
	target.Profiles = []conformance.Profile{conformance.Ring}
	target.Rerun = strings.ReplaceAll(target.Rerun, "TestProperties$", "TestPropertiesOfTheClassicRing$")
	pass(t, target)
}
