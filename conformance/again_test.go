package conformance

import (
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness/harnesstest"
)

// A fault that could not be made is tried once more, on servers that did not see the first attempt; servers after a case that hangs or leaves
// them unwell are others too.
func TestFaultIsMadeOnceMore(t *testing.T) {
	harnesstest.SharedCluster(t) // skips where there is no server

	var on []string
	target := own(Case{Name: "is-broken-once", Run: func(t *T) {
		if on = append(on, t.Cluster().Nodes()[0].ID()); len(on) == 1 {
			t.Broken("the servers do not agree")
		}
	}})
	target.Serverless, target.Slack = false, 1
	target.Cases[0].Tier = Fault
	_, got := execute(t, target)
	if r := got["is-broken-once"]; r.Status != StatusPass || r.Seen != "" || len(on) != 2 || on[0] == on[1] {
		t.Errorf("got %s %q, on the nodes %v", r.Status, r.Seen, on)
	}
}

// So it is on servers that are given: they are the same, and the keys are others.
func TestFaultIsMadeOnceMoreOnGivenServers(t *testing.T) {
	target := own(Case{Name: "is-broken-once", Run: func(t *T) {
		key := t.KeyIn(1, "n")
		if v := t.Ask(key, []string{"INCR", key}); v[0] != int64(1) {
			t.Errorf("the key was there: INCR gives %v", v[0])
		}
		if t.suite.attempt == "" {
			t.Broken("the servers do not agree")
		}
	}})
	target.Serverless, target.Slack, target.Cluster = false, 1, harnesstest.SharedCluster(t)
	target.Backend = rawTarget(target.Cluster, flaws{}).Backend
	target.Cases[0].Tier = Fault
	_, got := execute(t, target)
	if r := got["is-broken-once"]; r.Status != StatusPass || r.Seen != "" {
		t.Errorf("got %s %q", r.Status, r.Seen)
	}
}

// What a stall kept from being seen in time is looked for once more.
func TestStallIsForgiven(t *testing.T) {
	looks, checks := 0, 0
	stall := func() { time.Sleep(50 * time.Millisecond) }
	_, got := execute(t, own(
		Case{Name: "stalls", Run: func(t *T) {
			t.Eventually(time.Second, "it is so at the second look", func() bool { // 20 ms
				defer stall()
				looks++
				return looks > 1
			})
			t.Thrice(func() string {
				if checks++; checks > 1 {
					return ""
				}
				return "it took long"
			})
		}},
		Case{Name: "never-is-so", Run: func(t *T) { t.Eventually(0, "it is never so", func() bool { return false }) }},
		Case{Name: "is-wrong-thrice", Run: func(t *T) { t.Thrice(func() string { return "it took long" }) }},
	))
	for name, want := range map[string]Status{"stalls": StatusPass, "never-is-so": StatusFail, "is-wrong-thrice": StatusFail} {
		if r := got[name]; r.Status != want {
			t.Errorf("%s: got %s %q, want %s", name, r.Status, r.Seen, want)
		}
	}
}
