package replset

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/slotmap"
)

// hooks is a backend that a test can break: before is asked for each command of
// each call, and a non-nil error is returned instead of running it (for a whole
// Tx, if any of its commands gets one). after is asked when it has run, and its
// error takes the place of the replies, as when they are lost on their way.
type hooks struct {
	Backend
	before func(slot uint16, cmd []string) error
	after  func(slot uint16, cmd []string) error
	calls  atomic.Int64
}

func (h *hooks) ask(key string, cmd []string) error {
	h.calls.Add(1)
	if h.before == nil {
		return nil
	}
	return h.before(slotmap.Slot(key), cmd)
}

func (h *hooks) ran(key string, cmd []string) error {
	if h.after == nil {
		return nil
	}
	return h.after(slotmap.Slot(key), cmd)
}

func (h *hooks) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if err := h.ask(key, cmd); err != nil {
		return nil, err
	}
	v, err := h.Backend.Do(ctx, key, cmd)
	if lost := h.ran(key, cmd); lost != nil {
		return nil, lost
	}
	return v, err
}

func (h *hooks) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	replies := make([]any, len(cmds))
	for i, cmd := range cmds {
		v, err := h.Do(ctx, keys[i], cmd)
		if replies[i] = v; err != nil {
			replies[i] = err
		}
	}
	return replies
}

func (h *hooks) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	for _, cmd := range cmds {
		if err := h.ask(key, cmd); err != nil {
			return nil, err
		}
	}
	list, err := h.Backend.Tx(ctx, key, cmds)
	for _, cmd := range cmds {
		if lost := h.ran(key, cmd); lost != nil {
			return nil, lost
		}
	}
	return list, err
}

func newHooks() *hooks { return &hooks{Backend: memory.New()} }

// serverError is an error in a server's words.
type serverError string

func (e serverError) Error() string { return string(e) }

func newSet(t *testing.T, b Backend, opts *Options) *Set {
	t.Helper()
	s, err := New(b, "active", opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newFew is a set kept in 64 slots and its home, over all three masters: writes
// take a moment there, and a third of a second in all slots under the race
// detector.
func newFew(t *testing.T, b Backend, opts Options) *Set {
	t.Helper()
	for slot := 0; slot < slotmap.Slots; slot += slotmap.Slots / 64 {
		opts.Slots = append(opts.Slots, uint16(slot))
	}
	return newSet(t, b, &opts)
}

func publish(t *testing.T, s *Set, members ...string) {
	t.Helper()
	if err := s.Publish(t.Context(), members); err != nil {
		t.Fatal(err)
	}
}

// place publishes to the home slot and the slots of the keys alone: writing all
// 16384 takes a third of a second under the race detector.
func place(t *testing.T, s *Set, members []string, keys ...string) {
	t.Helper()
	now, _ := serverTime(do(t, s.backend, "TIME", ""))
	st := stamp{max(now, 1), len(members), digestOf(members)}
	for _, key := range append([]string{s.replicaKey(s.home)}, keys...) {
		replica := s.KeyFor(key)
		do(t, s.backend, "DEL", replica)
		if len(members) > 0 {
			do(t, s.backend, append([]string{"SADD", replica}, members...)...)
		}
		do(t, s.backend, "SET", replica+stampSuffix, st.String())
	}
}

// do runs one command beside the set, as another client would.
func do(t *testing.T, b Backend, cmd ...string) any {
	t.Helper()
	v, err := b.Do(context.Background(), cmd[1], cmd)
	if err != nil {
		t.Fatalf("%q: %v", cmd, err)
	}
	return v
}

// otherSlot is a slot that holds a replica and is not the set's home, another
// for each i below 64.
func (s *Set) otherSlot(i int) uint16 { return s.slots.but(s.home)[i] }

// times returns an error the first n times it is called, then nil.
func times(n int, err error) func() error {
	var mu sync.Mutex
	return func() error {
		mu.Lock()
		defer mu.Unlock()
		if n--; n < 0 {
			return nil
		}
		return err
	}
}

// eachSlot returns an error the first n times it is called for a slot.
func eachSlot(n int, err error) func(slot uint16) error {
	var mu sync.Mutex
	seen := map[uint16]int{}
	return func(slot uint16) error {
		mu.Lock()
		defer mu.Unlock()
		if seen[slot]++; seen[slot] > n {
			return nil
		}
		return err
	}
}

// soon polls until done holds, and fails after 10 s.
func soon(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
