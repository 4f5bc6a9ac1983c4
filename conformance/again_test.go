package conformance

import (
	"testing"

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
