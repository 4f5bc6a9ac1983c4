package tiercache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

// TestTagDuringOutage: a tag invalidated while a shard is out holds when it is back.
// What is set after it, where the shard is or was, counts.
func TestTagDuringOutage(t *testing.T) {
	outages(t, tiercache.Mechanisms{Notes: true}, func(t *testing.T, s *site, a, b *process) bool {
		key, other := keyWith(t, a, "a", "b"), keyWith(t, a, "a", "c")
		for _, key := range []string{key, other} {
			mustSet(t, a.Cache, key, 1, tiercache.Tags("t"))
		}
		s.cut("a")
		are(t, s.processes, "a")
		mustSet(t, a.Cache, other, 2, tiercache.Tags("t"))
		wantGet(t, b.Cache, other, 2)
		if err := b.InvalidateTag(t.Context(), "t"); err != nil {
			t.Errorf("with a shard out: got %v", err)
		}
		synctest.Wait()
		ok := wantNot(t, s.processes, other, 1, 2)
		mustSet(t, a.Cache, other, 3, tiercache.Tags("t"))
		wantGet(t, b.Cache, other, 3)
		s.mend("a")
		are(t, s.processes)
		ok = wantNot(t, s.processes, key, 1) && wantNot(t, s.processes, other, 1, 2) && ok
		mustSet(t, b.Cache, key, 4, tiercache.Tags("t"))
		synctest.Wait()
		for _, p := range s.processes {
			wantGet(t, p.Cache, key, 4)
		}
		return ok
	})
}

// TestTagOfOneCutOff: only the process that invalidates does not reach a shard. Those
// who do hear of it within the bound.
func TestTagOfOneCutOff(t *testing.T) {
	outages(t, tiercache.Mechanisms{Notes: true}, func(t *testing.T, s *site, a, b *process) bool {
		key := keyWith(t, a, "a", "b")
		mustSet(t, b.Cache, key, 1, tiercache.Tags("t"))
		a.cut("a")
		are(t, []*process{a}, "a")
		if err := a.InvalidateTag(t.Context(), "t"); err != nil {
			t.Errorf("got %v", err)
		}
		time.Sleep(bound)
		return wantNot(t, []*process{b}, key, 1)
	})
}
