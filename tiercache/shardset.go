package tiercache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// A shardSet is the shards of a cache, and what this process believes of them.
type shardSet struct {
	opts    *Options
	off     mechanisms
	events  *events
	routing atomic.Pointer[routing]

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	given    given
	changing sync.Mutex // held while this process changes the list of shards
	ending   sync.Mutex // held while it ends a handover

	// outdated removes key from L1 unless what is there was read at the sequence
	// or later.
	outdated func(r *remote, key string, sequence int64)

	mu sync.Mutex     // held while the routing changes, and while something is begun
	wg sync.WaitGroup // of all that runs behind
}

// begin runs f in a goroutine that close waits for, unless the cache is closed.
func (s *shardSet) begin(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.wg.Go(f)
	}
}

func (s *shardSet) close() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.wg.Wait()
}

// named is the shard of that name, nil if there is none.
func (s *shardSet) named(name string) *remote {
	rs := s.routing.Load()
	if i, ok := rs.whole.Find(name); ok {
		return rs.remotes[i]
	}
	return nil
}

// reroute puts those that are out in the overlay. Where all are, keys stay with
// their owners. The caller holds mu.
func (s *shardSet) reroute() {
	rs := *s.routing.Load()
	var down []string
	for _, r := range rs.remotes {
		if r.out.Load() {
			down = append(down, r.name)
		}
	}
	live, err := rs.whole.WithDown(down...)
	if err != nil { // all are
		live, down = rs.whole, nil
	}
	rs.live, rs.out = live, len(down) > 0
	s.routing.Store(&rs)
}

// remotes are all shards.
func (s *shardSet) remotes() []*remote { return s.routing.Load().remotes }

// each runs f for every shard, all at one time, and once more for all where they turn
// out to be others. Errors are joined.
func (s *shardSet) each(ctx context.Context, f func(route) error) error {
	for attempt := 0; ; attempt++ {
		rs := s.routing.Load()
		errs := make([]error, len(rs.remotes))
		var wg sync.WaitGroup
		for i, r := range rs.remotes {
			wg.Go(func() { errs[i] = f(route{remote: r, list: rs.list}) })
		}
		wg.Wait()
		err := errors.Join(errs...)
		if !errors.Is(err, errRouted) || attempt >= maxProposals || ctx.Err() != nil {
			return err
		}
	}
}

// others runs f for every shard besides r, all at one time, and waits.
func (s *shardSet) others(r *remote, f func(*remote)) {
	var wg sync.WaitGroup
	for _, other := range s.remotes() {
		if other != r {
			wg.Go(func() { f(other) })
		}
	}
	wg.Wait()
}
