package soak

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

func plan(t *testing.T, o Options) []Step {
	t.Helper()
	steps, err := Plan(&o)
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

func TestPlanIsTheSeeds(t *testing.T) {
	o := Options{Seed: 7, Duration: 10 * time.Minute}
	first := plan(t, o)
	if again := plan(t, o); !reflect.DeepEqual(first, again) {
		t.Error("the same seed gives another schedule")
	}
	o.Subject, o.Client, o.Rate = RingCache, "rueidis", 10
	if other := plan(t, o); !reflect.DeepEqual(first, other) {
		t.Error("the same seed gives another subject another schedule")
	}
	o.Seed = 8
	if other := plan(t, o); reflect.DeepEqual(first, other) {
		t.Error("another seed gives the same schedule")
	}
	kinds := map[FaultKind]int{}
	for _, s := range first {
		kinds[s.Kind]++
	}
	for _, k := range FaultKinds {
		if kinds[k] == 0 {
			t.Errorf("10 minutes have no %s", k)
		}
	}
}

// TestPlanOneFaultAtATime: for each shard and process; and all end in time.
func TestPlanOneFaultAtATime(t *testing.T) {
	for seed := range uint64(200) {
		o := Options{Seed: seed, Duration: time.Minute, Shards: 4, Processes: 3}
		busy, joined := map[[2]int]time.Duration{}, false
		last := time.Duration(0)
		for _, s := range plan(t, o) {
			if s.Kind.members() {
				if s.Shard != 4 || joined != (s.Kind == Leave) {
					t.Fatalf("seed %d: %v, want the spare shard to join and leave in turn", seed, s)
				}
				joined = !joined
			}
			lane := s.lane()
			end := s.At + s.For
			if s.Kind == Old {
				end += s.Delay
			}
			if s.At < last || s.At < busy[lane] || end > o.Duration {
				t.Fatalf("seed %d: %v: after a step at %v, busy until %v, of %v", seed, s, last, busy[lane], o.Duration)
			}
			last, busy[lane] = s.At, end
		}
	}
}

func TestPlanOfSomeFaults(t *testing.T) {
	for _, s := range plan(t, Options{Duration: time.Hour, Faults: []FaultKind{Flush, StopProc}}) {
		if s.Kind != Flush && s.Kind != StopProc {
			t.Fatalf("got %v, want flush and stopproc alone", s)
		}
	}
	if steps := plan(t, Options{Faults: []FaultKind{}}); len(steps) != 0 {
		t.Errorf("without faults: got %v", steps)
	}
}

func TestOptionsRefused(t *testing.T) {
	for name, o := range map[string]Options{
		"duration":  {Duration: -1},
		"rate":      {Rate: -1},
		"shards":    {Shards: -1},
		"processes": {Processes: 65},
		"heartbeat": {Heartbeat: time.Millisecond},
		"subject":   {Subject: "memcached"},
		"client":    {Client: "redigo"},
		"fault":     {Faults: []FaultKind{"flood"}},
		"shard":     {Schedule: []Step{{Kind: Kill, Shard: 4, Process: -1}}},
		"join":      {Schedule: []Step{{Kind: Join, Shard: 2, Process: -1}}},
		"process":   {Schedule: []Step{{Kind: StopProc, Shard: -1, Process: 4}}},
		"none":      {Schedule: []Step{{Kind: KillProc, Shard: 0, Process: -1}}},
		"kill one":  {Schedule: []Step{{Kind: Kill, Shard: 0, Process: 1}}},
	} {
		if _, err := Run(t.Context(), &o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: got %v, want ErrOptions", name, err)
		}
	}
}
