package scenarios

import (
	"context"
	"fmt"
	"slices"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// Names of variants.
const (
	ours    = "shardkit"
	byHand  = "go-pipelines"
	byRoute = "go-cluster"
	nobody  = "idle"
	bare    = "bare"

	inShortSteps = "shardkit-short"
	fetched      = "fetch-both"
)

// newSet returns a set as users make it, except that it may be as large as the part wants.
func (s *stage) newSet(name string) (*replset.Set, error) {
	return replset.New(s.backend, name, &replset.Options{MaxBytes: 64 << 30, Slots: s.target.some})
}

// others returns a set for each other client of the cluster.
func (s *stage) others(name string) (sets []*replset.Set, of []Adapter, err error) {
	for _, a := range s.target.Others {
		if a.Backend == nil {
			continue
		}
		set, err := replset.New(a.Backend, name, &replset.Options{MaxBytes: 64 << 30, Slots: s.target.some})
		if err != nil {
			return nil, nil, err
		}
		sets, of = append(sets, set), append(of, a)
	}
	return sets, of, nil
}

// writer is one way to write, one operation at a time.
type writer struct {
	name  string
	setUp func(ctx context.Context) error // may be nil
	write func(ctx context.Context) error
	wrote func() (name string, members []string) // what the replicas of that name hold after the last write
}

func (w writer) variant() bench.Variant {
	return bench.Variant{Name: w.name, Setup: func(ctx context.Context, _ int) (*bench.Subject, error) {
		if w.setUp != nil {
			if err := w.setUp(ctx); err != nil {
				return nil, err
			}
		}
		op := func(int) (bench.Op, error) { return w.write, nil }
		return &bench.Subject{Kinds: []bench.Kind{{Name: "write", Worker: op}}}, nil
	}}
}

// verify lets each writer write once more, and reads some replicas back: what one does not do costs it nothing.
func (s *stage) verify(ctx context.Context, writers []writer) error {
	for _, w := range writers {
		if err := w.write(ctx); err != nil {
			return fmt.Errorf("bench: %s, once more: %w", w.name, err)
		}
		name, members := w.wrote()
		if err := s.check(ctx, name, members); err != nil {
			return fmt.Errorf("bench: the figures of %s are worth nothing: %w", w.name, err)
		}
	}
	return nil
}

// checked is how many replicas are read back, spread over the slots.
const checked = 16

// check fails unless the replicas of that name hold the members.
func (s *stage) check(ctx context.Context, name string, members []string) error {
	want := slices.Sorted(slices.Values(members))
	slots := s.target.slots(name)
	for i := range checked {
		key := slotmap.KeyForSlot(name, slots[i*len(slots)/checked])
		got, err := s.target.Client.SMembers(ctx, key).Result()
		if err != nil {
			return fmt.Errorf("read %s back: %w", key, err)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("%s holds %d members, and not the %d that were written last", key, len(got), len(want))
		}
	}
	return nil
}
