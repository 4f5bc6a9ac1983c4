package tiercache

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync"
	"time"
)

// ShardState is whether a cache uses a shard.
type ShardState int

const (
	ShardServing   ShardState = iota // its keys are read and written there
	ShardOut                         // it fails; the next shards of its keys' walks stand in for it
	ShardReturning                   // it answers again, and is rid of what is old
)

func (s ShardState) String() string {
	return [...]string{"serving", "out", "returning"}[s]
}

// ShardHealth is the state of a shard, as this process sees it.
type ShardHealth struct {
	Shard string
	State ShardState
	Since time.Time // of serving, or of not serving
	Err   error     // the last failure of a probe or operation; nil if there was none
}

// Health returns the state of every shard, in the order of their names.
//
// A shard is out when 3 of the last 5 probes failed, or operations between them, and
// serves again after 2 probes that succeeded. A probe is sent every quarter of
// Options.Heartbeat, 250 ms at most, on a connection of its own where the Shard has
// Dedicate. It writes: a shard that is read-only, full, loading or a replica is out.
// At defaults a shard that is killed or frozen is out within 1.7 s.
func (c *Cache[V]) Health() []ShardHealth {
	remotes := c.remotes()
	list := make([]ShardHealth, len(remotes))
	for i, r := range remotes {
		h := &r.health
		h.mu.Lock()
		list[i] = ShardHealth{r.name, h.state, h.since, h.err}
		h.mu.Unlock()
	}
	return list
}

const (
	probesSeen  = 5 // that the state is judged by
	probesBad   = 3 // of these, for a shard to be out
	probesGood  = 2 // one after the other, for it to serve
	probePause  = 250 * time.Millisecond
	probeLeast  = 10 * time.Millisecond
	probeJitter = 4 // a part of the pause, 1/4 each way
)

// health is what is known of a shard's. What is written is guarded by mu.
type health struct {
	mu     sync.Mutex
	state  ShardState
	since  time.Time
	err    error
	failed uint8 // a bit for each outcome, the last one lowest
	good   int   // probes that succeeded since the last one that did not

	failing chan error // one place: an operation failed
}

// suspect tells that an operation failed. However many do at one time, they count
// as one, and a probe goes out at once.
func (h *health) suspect(err error) {
	select {
	case h.failing <- err:
	default:
	}
}

// add takes an outcome, and returns whether the shard's state is to change.
func (h *health) add(err error, probe bool) (fell, rose bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed = h.failed << 1 & (1<<probesSeen - 1)
	if err != nil {
		h.failed |= 1
		h.err = err
		h.good = 0
	} else {
		h.good++
	}
	switch {
	case h.state == ShardServing && probe && err != nil && bits.OnesCount8(h.failed) >= probesBad:
		return true, false
	case h.state == ShardOut && h.good >= probesGood:
		h.state = ShardReturning
		return false, true
	}
	return false, false
}

// set is the state from now on.
func (h *health) set(state ShardState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state, h.since, h.good, h.failed = state, time.Now(), 0, 0
}

// stay leaves a shard out that could not be taken in. The next probe that succeeds is
// enough for another try.
func (h *health) stay(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state, h.err, h.good = ShardOut, err, probesGood-1
}

// watch probes r until ctx ends.
func (s *shardSet) watch(ctx context.Context, r *remote) {
	pipeline, done := r.shard.Pipeline, func() {}
	if d, ok := r.shard.(Dedicator); ok {
		pipeline, done = d.Dedicate()
	}
	defer done()
	probe := func(ctx context.Context, cmd []string) (any, error) {
		return probed(pipeline(ctx, [][]string{cmd, {"ROLE"}}))
	}
	pause := min(s.opts.Heartbeat/4, probePause)
	timer := time.NewTimer(s.jittered(pause))
	defer timer.Stop()
	for began := now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case err := <-r.health.failing:
			r.health.add(err, false)
			if now()-began < int64(probeLeast) {
				continue
			}
		}
		began = now()
		err := s.probe(ctx, r, probe)
		if ctx.Err() != nil {
			return
		}
		fell, rose := r.health.add(err, true)
		if fell {
			s.takeOut(r, err)
		}
		next := pause
		if rose {
			if err := s.comeBack(ctx, r, r.send); err != nil {
				r.health.stay(err)
			}
		}
		if err == nil && r.out.Load() {
			next = pause / 4 // it takes one more
		}
		timer.Reset(max(s.jittered(next)-time.Duration(now()-began), probeLeast/2))
	}
}

func (s *shardSet) jittered(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*2/probeJitter*float64(d))
}

// probe asks a shard to write, which is how a process watches it.
func (s *shardSet) probe(ctx context.Context, r *remote, do sender) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout*3/5)
	defer cancel()
	_, err := s.hello(ctx, r, do, greeting{age: s.opts.Heartbeat / 2, watch: !r.out.Load()})
	return err
}

// probed is the reply to the first of two commands, if the second says that the
// server is a master, or does not say.
func probed(replies []any) (any, error) {
	if len(replies) != 2 {
		return nil, fmt.Errorf("%d replies to 2 commands", len(replies))
	}
	if err, ok := replies[0].(error); ok {
		return nil, err
	}
	if role, ok := replies[1].([]any); ok && len(role) > 0 && role[0] != "master" {
		return nil, fmt.Errorf("%w: %v", errRole, role[0])
	}
	return replies[0], nil
}

var errRole = errors.New("the server is no master")

// takeOut has the next shards stand in for r.
func (s *shardSet) takeOut(r *remote, err error) {
	s.mu.Lock()
	r.out.Store(true)
	s.reroute()
	s.mu.Unlock()
	r.health.set(ShardOut)
	s.events.tell(EventShardOut, r.name, "", err)
	r.listener.mu.Lock()
	r.end(endOut, nil)
	r.listener.mu.Unlock()
	for _, other := range s.remotes() {
		other.listener.hurry() // which declares it
	}
	s.broke(r)
}

// comeBack takes r in again, once nothing old is there.
func (s *shardSet) comeBack(ctx context.Context, r *remote, do sender) error {
	r.returning.Add(1)
	defer r.returning.Add(-1)
	if err := s.rejoin(ctx, r, do); err != nil {
		return err
	}
	s.takeIn(r)
	return nil
}

func (s *shardSet) takeIn(r *remote) {
	s.mu.Lock()
	was := r.out.Swap(false)
	s.reroute()
	s.mu.Unlock()
	if !was {
		return
	}
	r.health.set(ShardServing)
	r.mendBreaker()
	r.listener.hurry()
	s.events.tell(EventShardBack, r.name, "", nil)
}

// admit sees to it that what r holds may be read: all are out, or nobody watched it.
// Calls at one time are one.
func (s *shardSet) admit(ctx context.Context, r *remote) error {
	ch := r.admissions.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
		defer cancel()
		s.mu.Lock() // or it may be out already, and none stands in for it yet
		out, others := r.out.Load(), s.routing.Load().out
		s.mu.Unlock()
		switch {
		case !out:
			return nil, s.rejoin(ctx, r, r.do)
		case others:
			return nil, errRouted // they stand in for it, and its probes bring it back
		}
		return nil, s.comeBack(ctx, r, r.do)
	})
	select {
	case res := <-ch:
		return res.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// scripts that are run at r go by a sender.
type sender = func(ctx context.Context, cmd []string) (any, error)
