package replset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/replset/memory"
)

// seeds are a few fixed ones and a new one, or the one to run again.
func seeds(t *testing.T, fixed ...uint64) []uint64 {
	if text := os.Getenv("SHARDKIT_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("SHARDKIT_SEED: %v", err)
		}
		return []uint64{seed}
	}
	return append(fixed, uint64(time.Now().UnixNano()))
}

// randomWrite is a write with a random content, as a set method and as what it
// does to a model.
type randomWrite struct {
	op          string
	add, remove []string
}

func newRandomWrite(rnd *rand.Rand) randomWrite {
	some := func() []string {
		members := make([]string, rnd.IntN(5))
		for i := range members {
			members[i] = string(rune('a' + rnd.IntN(10)))
		}
		return members
	}
	w := randomWrite{op: []string{"publish", "add", "add", "remove", "remove", "apply", "apply", "clear"}[rnd.IntN(8)]}
	if w.op != "clear" && w.op != "remove" {
		w.add = some()
	}
	if w.op == "remove" || w.op == "apply" {
		w.remove = some()
	}
	if w.op == "apply" {
		w.add = slices.DeleteFunc(w.add, func(m string) bool { return slices.Contains(w.remove, m) })
	}
	return w
}

func (w randomWrite) run(ctx context.Context, s *Set) error {
	switch w.op {
	case "publish":
		return s.Publish(ctx, w.add)
	case "add":
		return s.Add(ctx, w.add...)
	case "remove":
		return s.Remove(ctx, w.remove...)
	case "apply":
		return s.Apply(ctx, Delta{Add: w.add, Remove: w.remove})
	}
	return s.Clear(ctx)
}

// on changes a model, a dumb list of members; nil is a cleared set.
func (w randomWrite) on(model map[string]bool) map[string]bool {
	switch w.op {
	case "publish":
		model = map[string]bool{}
	case "clear":
		return nil
	}
	for _, m := range w.add {
		model[m] = true
	}
	for _, m := range w.remove {
		delete(model, m)
	}
	return model
}

// Writers race, and lose replies and connections. Every reader sees each
// replica whole, with numbers that only grow; and in the end all slots hold what
// the writes give when done one after another in the order of their numbers.
func TestRacingWritersConverge(t *testing.T) {
	const writers, rounds, readers = 4, 12, 2
	for _, seed := range seeds(t, 1, 2) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			t.Logf("again: SHARDKIT_SEED=%d go test -race -run %s ./replset", seed, strings.Split(t.Name(), "/")[0])
			shared := memory.New()
			type done struct {
				number int64
				write  randomWrite
				stamp  stamp
			}
			var mu sync.Mutex
			var history []done
			var all sync.WaitGroup
			reading, stop := context.WithCancel(t.Context())
			watcher := newFew(t, shared, Options{})
			for r := range readers {
				rnd := rand.New(rand.NewPCG(seed, 100+uint64(r)))
				all.Go(func() { watch(t, reading, watcher, rnd) })
			}
			var writing sync.WaitGroup
			for w := range writers {
				rnd := rand.New(rand.NewPCG(seed, uint64(w)))
				b := &hooks{Backend: shared}
				s := newFew(t, b, Options{Patience: time.Minute})
				var current randomWrite
				var luck sync.Mutex
				unlucky := func(permille int) error {
					luck.Lock()
					defer luck.Unlock()
					switch n := rnd.IntN(1000); {
					case n < permille:
						return errors.New("read tcp: connection reset by peer")
					case n < 2*permille:
						return serverError("CLUSTERDOWN The cluster is down")
					}
					return nil
				}
				b.before = func(uint16, []string) error { return unlucky(3) }
				b.after = func(slot uint16, cmd []string) error {
					if cmd[0] == "SET" && cmd[1] == s.replicaKey(s.home)+stampSuffix {
						st, _ := parseStamp(cmd[2])
						mu.Lock()
						history = append(history, done{st.number, current, st})
						mu.Unlock()
					}
					return unlucky(3)
				}
				writing.Go(func() {
					for range rounds {
						luck.Lock()
						current = newRandomWrite(rnd)
						luck.Unlock()
						if err := current.run(t.Context(), s); err != nil && !errors.Is(err, ErrReplicaMissing) {
							t.Errorf("%+v: %v", current, err)
						}
					}
				})
			}
			writing.Wait()
			stop()
			all.Wait()

			slices.SortFunc(history, func(a, b done) int { return cmp.Compare(a.number, b.number) })
			var model map[string]bool
			for i, h := range history {
				if i > 0 && h.number == history[i-1].number {
					t.Fatalf("two writes took the number %d: %+v and %+v", h.number, history[i-1].write, h.write)
				}
				model = h.write.on(model)
				size := len(model)
				if model == nil {
					size = cleared
				}
				if h.stamp.count != size {
					t.Fatalf("after %+v the stamp says %d members, one after another they are %d", h.write, h.stamp.count, size)
				}
			}
			if model == nil {
				wantCleared(t, watcher)
				return
			}
			var members []string
			for m := range model {
				members = append(members, m)
			}
			wantEverywhere(t, watcher, members...)
		})
	}
}

// watch reads replicas until ctx ends.
func watch(t *testing.T, ctx context.Context, s *Set, rnd *rand.Rand) {
	last := map[uint16]int64{}
	for ctx.Err() == nil {
		slot := s.slots.list[rnd.IntN(len(s.slots.list))]
		r := readOne(t, s, slot)
		if r.stamp == "" {
			if last[slot] != 0 || r.members != "" {
				t.Errorf("slot %d holds %q without a stamp", slot, r.members)
				return
			}
			continue
		}
		st, ok := parseStamp(r.stamp)
		members := strings.Fields(r.members)
		switch {
		case !ok:
			t.Errorf("slot %d: the stamp is %q", slot, r.stamp)
		case st.number < last[slot]:
			t.Errorf("slot %d went back from number %d to %d", slot, last[slot], st.number)
		case st.count == cleared && len(members) == 0:
		case st.count != len(members) || st.digest != digestOf(members):
			t.Errorf("slot %d is torn: it holds %q under %q", slot, members, r.stamp)
		}
		if t.Failed() {
			return
		}
		last[slot] = st.number
	}
}
