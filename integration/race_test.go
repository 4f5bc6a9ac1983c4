package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// randomWrite is a write with a random content, as a set's method and as what it
// does to a model.
type randomWrite struct {
	op          string
	add, remove []string
}

func newRandomWrite(rnd *rand.Rand) randomWrite {
	some := func() []string {
		members := make([]string, 1+rnd.IntN(4))
		for i := range members {
			members[i] = string(rune('a' + rnd.IntN(10)))
		}
		return members
	}
	w := randomWrite{op: []string{"publish", "publish", "add", "add", "remove", "remove", "apply", "apply", "clear"}[rnd.IntN(9)]}
	switch w.op {
	case "publish", "add":
		w.add = some()
	case "remove":
		w.remove = some()
	case "apply":
		w.remove = some()
		w.add = slices.DeleteFunc(some(), func(m string) bool { return slices.Contains(w.remove, m) })
	}
	return w
}

func (w randomWrite) run(ctx context.Context, s *replset.Set) error {
	switch w.op {
	case "publish":
		return s.Publish(ctx, w.add)
	case "add":
		return s.Add(ctx, w.add...)
	case "remove":
		return s.Remove(ctx, w.remove...)
	case "apply":
		return s.Apply(ctx, replset.Delta{Add: w.add, Remove: w.remove})
	}
	return s.Clear(ctx)
}

// on changes a dumb model; nil is a cleared set.
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

// historian notes each number that the home slot gave, and what for.
type historian struct {
	replset.Backend
	home    string
	current randomWrite

	mu    *sync.Mutex
	given *[]given
	lossy func() bool // whether to lose a reply on its way
}

type given struct {
	number string
	size   string // of the set after the write, as the stamp says
	write  randomWrite
}

func (h *historian) Do(ctx context.Context, key string, cmd []string) (any, error) {
	v, err := h.Backend.Do(ctx, key, cmd)
	if text, ok := v.(string); ok && isScript(cmd) && len(cmd) > 3 && cmd[3] == h.home {
		if words := strings.Fields(text); len(words) == 5 && words[0] == "ok" {
			h.mu.Lock()
			*h.given = append(*h.given, given{words[2], words[3], h.current})
			h.mu.Unlock()
		}
	}
	if err == nil && h.lossy() {
		return nil, errors.New("read tcp: connection reset by peer")
	}
	return v, err
}

func (h *historian) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	replies := h.Backend.Pipeline(ctx, keys, cmds)
	for i := range replies {
		if h.lossy() {
			replies[i] = errors.New("read tcp: connection reset by peer")
		}
	}
	return replies
}

// Several sets over different clients and rungs publish, add, remove and clear
// at once, and lose replies. In the end all slots hold what these writes
// give when done one after another in the order of their numbers.
func TestRacingWritersConverge(t *testing.T) {
	t.Run("some slots", func(t *testing.T) { raceWriters(t, some(128), 8) })
	t.Run("many slots", func(t *testing.T) { raceWriters(t, some(4096), 1) })
}

func raceWriters(t *testing.T, slots []uint16, rounds int) {
	c := harnesstest.SharedCluster(t)
	start := seed(t)
	var mu sync.Mutex
	var history []given
	var writers sync.WaitGroup
	for w := range 4 {
		rnd := rand.New(rand.NewPCG(start, uint64(w)))
		var luck sync.Mutex
		h := &historian{
			Backend: open(t, clients[w%len(clients)].name, c),
			home:    slotmap.KeyForSlot(name(t), slotmap.Slot(name(t))),
			mu:      &mu, given: &history,
			lossy: func() bool {
				luck.Lock()
				defer luck.Unlock()
				return rnd.IntN(500) == 0
			},
		}
		// The rungs that keep the order inside the server, mixed.
		s := newSet(t, rungs[w%3].wrap(h), replset.Options{Slots: slots, Patience: time.Minute})
		if w == 0 {
			h.current = randomWrite{op: "publish"}
			publish(t, s)
		}
		writers.Go(func() {
			for range rounds {
				luck.Lock()
				h.current = newRandomWrite(rnd)
				luck.Unlock()
				if err := h.current.run(t.Context(), s); err != nil && !errors.Is(err, replset.ErrReplicaMissing) {
					t.Errorf("%+v: %v", h.current, err)
				}
			}
		})
	}
	writers.Wait()

	slices.SortFunc(history, func(a, b given) int {
		return cmp.Or(cmp.Compare(len(a.number), len(b.number)), cmp.Compare(a.number, b.number))
	})
	var model map[string]bool
	for i, g := range history {
		if i > 0 && g.number == history[i-1].number {
			t.Fatalf("two writes took the number %s: %+v and %+v", g.number, history[i-1].write, g.write)
		}
		model = g.write.on(model)
		size := fmt.Sprint(len(model))
		if model == nil {
			size = "-1"
		}
		if g.size != size {
			t.Fatalf("after %+v the stamp says %s members, one after another they are %s", g.write, g.size, size)
		}
	}
	b := open(t, "goredis", c)
	s := newSet(t, b, replset.Options{Slots: slots})
	if model == nil {
		wantCleared(t, b, s, slots)
	} else {
		var members []string
		for m := range model {
			members = append(members, m)
		}
		wantReplicas(t, b, s, slots, members...)
	}
	t.Logf("%d writes took a number", len(history))
}
