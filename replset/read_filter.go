package replset

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/shardkit/shardkit/slotmap"
)

// Filter returns the members of the sharded set at key that are in every set of
// in and in none of notIn, in one round trip and at one moment. All sets must
// use one backend; the options of the first one count.
func Filter(ctx context.Context, key string, in, notIn []*Set) ([]string, error) {
	const op = "filter"
	sets := append(append([]*Set{}, in...), notIn...)
	if len(sets) == 0 {
		return nil, fmt.Errorf("replset: %s: no set was given", op)
	}
	for _, s := range sets {
		if s == nil || !sameBackend(s.backend, sets[0].backend) {
			return nil, fmt.Errorf("replset: %s: every set must be given, and use the same backend", op)
		}
	}
	// With sets of both kinds the server answers what is in all of in, and for
	// each of notIn what of that is in it too: both are small, where the rest of
	// key without notIn may be large.
	replies, err := ask(ctx, question{
		op: op, key: key, sets: sets,
		commands: func(replicas []string) [][]string {
			if len(in) == 0 {
				return [][]string{words("SDIFF", []string{key}, replicas)}
			}
			inside := words("SINTER", []string{key}, replicas[:len(in)])
			cmds := [][]string{inside}
			for _, replica := range replicas[len(in):] {
				cmds = append(cmds, words(inside[0], inside[1:], []string{replica}))
			}
			return cmds
		},
		whole: each("SMEMBERS", []string{key}),
		apart: func(contents []content, whole []any) ([]any, error) {
			inside, err := intersection(contents[:len(in)], whole)
			if err != nil {
				return nil, err
			}
			rest, err := difference(contents[len(in):], []any{inside})
			return []any{rest}, err
		},
	})
	members, err := stringsOf(op, key, replies, err)
	if err != nil || len(replies) == 1 {
		return members, err
	}
	excluded := content{}
	for _, v := range replies[1:] {
		out, err := asStrings(v)
		if err != nil {
			return nil, slotError(op, key, err)
		}
		for _, m := range out {
			excluded[m] = struct{}{}
		}
	}
	kept := members[:0]
	for _, m := range members {
		if !excluded.has(m) {
			kept = append(kept, m)
		}
	}
	return kept, nil
}

const (
	manyChunk  = 1000 // candidates a command
	manyAtOnce = 8    // commands in flight
)

// ContainsMany reports for each member whether it is in the set. It spreads the
// candidates over replicas in many slots, and so over the masters, a thousand a
// command: for lists that would hold up one node. Each thousand is answered at
// one moment, and these are moments apart.
func (s *Set) ContainsMany(ctx context.Context, members []string) ([]bool, error) {
	in := make([]bool, len(members))
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	free := make(chan struct{}, manyAtOnce)
	for start, n := 0, 0; start < len(members); start, n = start+manyChunk, n+1 {
		end := min(start+manyChunk, len(members))
		// Masters own runs of slots as a rule, so distant slots lie on different ones.
		slot := s.slots.list[(n*(slotmap.Slots*5/13))%len(s.slots.list)]
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			some, err := s.ContainsEach(ctx, s.replicaKey(slot), members[start:end]...)
			copy(in[start:end], some)
			if err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errs[0]
	}
	return in, nil
}

// sameBackend is a == b without the panic where an author's type cannot be
// compared: nothing tells two of those apart.
func sameBackend(a, b Backend) bool {
	if reflect.TypeOf(a) != reflect.TypeOf(b) || !reflect.ValueOf(a).Comparable() {
		return reflect.TypeOf(a) == reflect.TypeOf(b)
	}
	return a == b
}
