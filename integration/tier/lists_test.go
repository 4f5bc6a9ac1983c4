package tier

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// TestGivenDifferently: processes that were given different shards both say so within two
// heartbeats, and take it back when one of them has left.
func TestGivenDifferently(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		nodes := servers(t, 3, harness.Options{})
		told := make(chan time.Time, 1000)
		opts := &tiercache.Options{OnEvent: func(e tiercache.Event) {
			if e.Kind == tiercache.EventDiffer {
				told <- time.Now()
			}
		}}
		a := open[int](t, c, nodes[:2], opts)
		synced(t, a)
		b := open[int](t, c, nodes, opts)
		synced(t, b)
		met := time.Now()
		within(t, 10*time.Second, "both tell", func() bool {
			ma, mb := a.Members(), b.Members()
			return slices.Equal(ma.Others, []uint64{mb.Given}) && slices.Equal(mb.Others, []uint64{ma.Given})
		})
		if took := time.Since(met); took > 2*time.Second {
			t.Errorf("both tell after %v, want 2 s at most", took)
		}
		within(t, 2*time.Second, "an event of each", func() bool { return len(told) >= 2 })
		b.Close()
		within(t, 10*time.Second, "nothing differs any more", func() bool { return len(a.Members().Others) == 0 })
	})
}

// TestForeignList: what others wrote where the list of shards and the fingerprints are kept
// does not keep a cache from working, nor from making a list.
func TestForeignList(t *testing.T) {
	t.Parallel()
	for name, cmds := range map[string][][]string{
		"string":  {{"SET", "tc#list", "garbage"}, {"SET", "tc#given", "garbage"}},
		"text":    {{"HSET", "tc#list", "number", "5", "text", "garbage", "since", "1"}},
		"number":  {{"HSET", "tc#list", "number", "many", "text", `{"shards":["shard-1"]}`}},
		"highest": {{"HSET", "tc#list", "number", "1e300", "text", `{"shards":["shard-1"]}`, "since", "1"}},
		"empty":   {{"HSET", "tc#list", "number", "7", "text", `{"shards":[]}`, "since", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := servers(t, 3, harness.Options{})
			foul := func() {
				for _, n := range nodes[:2] {
					replies, err := n.Pipeline(context.Background(), append([][]string{{"DEL", "tc#list", "tc#given"}}, cmds...)...)
					for _, r := range replies {
						if e, ok := r.(error); ok {
							t.Fatal(e)
						}
					}
					ok(t, err)
				}
			}
			foul()
			cache := open[int](t, clients[0], nodes[:2], nil)
			synced(t, cache)
			mustSet(t, cache, "k", 1)
			wantGet(t, cache, "k", 1)
			ok(t, cache.AddShard(context.Background(), nodes[2].Name(), clients[0].shard(t, nodes[2].Addr())))
			foul()
			within(t, 10*time.Second, "the list is there again", func() bool {
				number, err := nodes[0].Do(context.Background(), "HGET", "tc#list", "text")
				text, _ := number.(string)
				return err == nil && len(text) > len(`{"shards":["shard-1"]}`)
			})
			mustSet(t, cache, "k", 2)
			wantGet(t, cache, "k", 2)
			if got := cache.Members(); len(got.Shards) != 3 {
				t.Errorf("got %+v, want three shards", got)
			}
		})
	}
}
