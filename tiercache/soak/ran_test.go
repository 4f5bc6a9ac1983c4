package soak

import (
	"slices"
	"testing"
	"time"
)

func TestCutShortByAStop(t *testing.T) {
	for name, s := range map[string]struct {
		story           string
		stopped, failed int
	}{
		"at its deadline":                {"p1 load - 1000..4000 unknown\npause p1 1500..4000", 1, 0},
		"until shortly before it":        {"p1 load - 1000..3000 unknown\npause p1 1500..2600", 1, 0},
		"for long, but time was left":    {"p1 load - 1000..3000 unknown\npause p1 1100..2400", 0, 1},
		"another process":                {"p1 load - 1000..3000 unknown\npause p2 1500..4000", 0, 1},
		"after it had failed":            {"p1 load - 1000..1100 unknown\npause p1 1200..4000", 0, 1},
		"but it was answered":            {"p1 load - 1000..4000\npause p1 1500..4000", 0, 0},
		"a write whose deadline it met":  {"p1 set 1 1000..1500 unknown\npause p1 1200..1400", 1, 0},
		"a write, long before that":      {"p1 set 1 1000..1500 unknown\npause p1 1100..1200", 0, 1},
		"a write that took no effect":    {"p1 set 1 1000..2000 refused\npause p1 1200..2000", 1, 0},
		"a pause that ended before":      {"p1 load - 1000..3000 unknown\npause p1 500..900", 0, 1},
		"nothing stopped, and it failed": {"p1 load - 1000..3000 unknown", 0, 1},
	} {
		r := Check(story(t, s.story))
		all := r.ops(func(Kind) bool { return true })
		if r.Stopped != s.stopped || all.All-all.OK != s.failed {
			t.Errorf("%s: got %d cut short and %d failed, want %d and %d", name, r.Stopped, all.All-all.OK, s.stopped, s.failed)
		}
	}
}

// TestTimesThatCount: of a shard that all processes find out 1 s after it went, and use
// again 0.5 s after it was back, only where nothing else delayed them.
func TestTimesThatCount(t *testing.T) {
	const out, back = time.Second, 500 * time.Millisecond
	for name, s := range map[string]struct {
		story               string
		detected, recovered int
		kind                FaultKind
		policy              string
	}{
		"nothing else":                     {story: ``, detected: 3, recovered: 3},
		"stopped while it went":            {story: `pause p1 10500..10600`, detected: 2, recovered: 3},
		"stopped while it was out":         {story: `pause p1 12000..12100`, detected: 3, recovered: 2},
		"stopped before":                   {story: `pause p1 9000..10000`, detected: 3, recovered: 3},
		"killed while it was out":          {story: `fault killproc 0 p2 12000..13000`, detected: 3, recovered: 2},
		"killed while it went":             {story: `fault killproc 0 p2 10500..10700`, detected: 2, recovered: 3},
		"broken again":                     {story: `fault cut 1 p0 20200..20400`, detected: 3, recovered: 0},
		"broken again for one":             {story: `fault cut 1 p3 20200..20400`, detected: 3, recovered: 2},
		"broken again after it was used":   {story: `fault cut 1 p0 20600..20700`, detected: 3, recovered: 3},
		"another shard is broken":          {story: `fault cut 2 p0 20200..20400`, detected: 3, recovered: 3},
		"full, and nothing can be evicted": {kind: Memory, policy: "noeviction", detected: 3, recovered: 3},
		"full, and makes room":             {kind: Memory, policy: "allkeys-lru"},
		"flaps":                            {kind: Flap},
	} {
		h := story(t, "fault kill 1 p0 10000..20000\n"+s.story)
		if s.kind != "" {
			h.Faults[0].Kind, h.Faults[0].Policy = s.kind, s.policy
		}
		for process := range 3 {
			h.Shards = append(h.Shards, ShardEvent{Process: process, At: 11e9}, ShardEvent{Process: process, Healthy: true, At: 20.5e9})
		}
		r := Check(h)
		if len(r.Detection) != s.detected || len(r.Recovery) != s.recovered {
			t.Errorf("%s: got %d and %d times, want %d and %d", name, len(r.Detection), len(r.Recovery), s.detected, s.recovered)
		}
		if slices.ContainsFunc(r.Detection, func(d time.Duration) bool { return d != out }) || slices.ContainsFunc(r.Recovery, func(d time.Duration) bool { return d != back }) {
			t.Errorf("%s: got %v and %v, want %v and %v", name, r.Detection, r.Recovery, out, back)
		}
	}
}
