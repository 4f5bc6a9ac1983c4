package scenarios

import (
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// TestFailover: each variant does what it says, once; with SHARDKIT_LONG=1 the whole part.
func TestFailover(t *testing.T) {
	servers := harnesstest.Shards(t, harness.Options{Shards: 3, Private: true})
	tg := &Target{Prefix: "skbfailover", Nodes: servers.Nodes()}
	for _, addr := range servers.Addrs() {
		client := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1, DialTimeout: 500 * time.Millisecond})
		t.Cleanup(func() { _ = client.Close() })
		tg.Shards = append(tg.Shards, client)
	}
	if os.Getenv("SHARDKIT_LONG") == "1" {
		r := runParts(t, tg, nil, "failover")[0]
		if got := variantNames(r); got != "killed frozen returned killed'" {
			t.Errorf("got variants %q", got)
		}
		for _, v := range r.Variants {
			if v.Response.Count != 5 || v.Response.Min < time.Millisecond {
				t.Errorf("%s: got %d, of %v at least; want 5 that take their time", v.Name, v.Response.Count, v.Response.Min)
			}
		}
	}
	part := onePart(t, "failover")
	if part.CanGate() {
		t.Error("a gate cannot kill servers")
	}
	f, end, err := newFailovers(t.Context(), &stage{target: tg, opts: &Options{}, part: part, prefix: tg.Prefix})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range f.variants() {
		subject, err := v.Setup(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := subject.Batch(t.Context(), 1)
		if err != nil || len(b.Took) != 1 || b.Took[0] <= 0 || len(b.Errs) != 0 {
			t.Fatalf("%s: got %+v, %v; want one time", v.Name, b, err)
		}
		t.Logf("%s: %v", v.Name, b.Took[0].Round(time.Millisecond))
		if !f.node.Alive(t.Context()) {
			t.Fatalf("%s: the server was not started again", v.Name)
		}
	}
	end(&err)
	if err != nil {
		t.Error(err)
	}
	for _, n := range servers.Nodes() {
		if v, err := n.Do(t.Context(), "DBSIZE"); err != nil || v != int64(0) {
			t.Errorf("%v keys left, %v; want none", v, err)
		}
	}
	tg.Nodes = nil
	if _, err := Run(t.Context(), []Part{part}, tg, nil); err == nil {
		t.Error("without nodes to kill there is no error")
	}
}
