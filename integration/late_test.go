package integration

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
)

// recorder keeps a copy of every script call.
type recorder struct {
	replset.Backend
	mu   *sync.Mutex
	sent *[]sent
}

type sent struct {
	key string
	cmd []string
}

func (r recorder) record(key string, cmd []string) {
	if isScript(cmd) {
		r.mu.Lock()
		*r.sent = append(*r.sent, sent{key, slices.Clone(cmd)})
		r.mu.Unlock()
	}
}

func (r recorder) Do(ctx context.Context, key string, cmd []string) (any, error) {
	r.record(key, cmd)
	return r.Backend.Do(ctx, key, cmd)
}

func (r recorder) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	for i, cmd := range cmds {
		r.record(keys[i], cmd)
	}
	return r.Backend.Pipeline(ctx, keys, cmds)
}

// Every call of some writes arrives a second time, when a newer write has been
// done: as after a time-out, or from a process that was paused. Nothing changes,
// whatever the newer write was.
func TestLateCallsChangeNothing(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	for _, rung := range rungs[:3] { // transactions have no order of their own
		t.Run(strings.ReplaceAll(rung.name, " ", "-"), func(t *testing.T) {
			eachClient(t, c, func(t *testing.T, b replset.Backend) {
				slots := some(48)
				var late []sent
				s := newSet(t, rung.wrap(recorder{b, &sync.Mutex{}, &late}), replset.Options{Slots: slots})
				ctx := t.Context()
				steps := []func() error{
					func() error { return s.Publish(ctx, []string{"a", "b"}) },
					func() error { return s.Add(ctx, "c", "d") },
					func() error { return s.Remove(ctx, "a") },
					func() error { return s.Publish(ctx, nil) },
					func() error { return s.Publish(ctx, []string{"x"}) },
					func() error { return s.Clear(ctx) },
					func() error { return s.Publish(ctx, []string{"y", "z"}) },
				}
				newest := []struct {
					name  string
					write func() error
					check func()
				}{
					{"publish", func() error { return s.Publish(ctx, []string{"new"}) }, func() { wantReplicas(t, b, s, slots, "new") }},
					{"add", func() error { return s.Add(ctx, "more") }, func() { wantReplicas(t, b, s, slots, "new", "more") }},
					{"publish empty", func() error { return s.Publish(ctx, nil) }, func() { wantReplicas(t, b, s, slots) }},
					{"clear", func() error { return s.Clear(ctx) }, func() { wantCleared(t, b, s, slots) }},
				}
				for _, write := range steps {
					if err := write(); err != nil {
						t.Fatal(err)
					}
				}
				calls := slices.Clone(late)
				for _, n := range newest {
					if err := n.write(); err != nil {
						t.Fatalf("%s: %v", n.name, err)
					}
					before := readAll(t, b, s.Name(), slots)
					for _, call := range calls {
						_, _ = b.Do(ctx, call.key, call.cmd) // an error is an answer too
					}
					n.check()
					for slot, r := range readAll(t, b, s.Name(), slots) {
						if r.number != before[slot].number || r.text != before[slot].text {
							t.Errorf("after %s and %d late calls, slot %d has the stamp %d %q, which was %d %q", n.name, len(calls), slot, r.number, r.text, before[slot].number, before[slot].text)
							break
						}
					}
					if t.Failed() {
						t.Fatalf("late calls after %s", n.name)
					}
				}
			})
		})
	}
}
