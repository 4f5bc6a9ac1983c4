package tiercache

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// errClaimed means that another process reads the notes.
var errClaimed = errors.New("another process reads the notes")

const notesAtOnce = 500

// clearNotes deletes at r what the notes of other name, and then removes the notes.
// One that was left again meanwhile stays.
func (s *shardSet) clearNotes(ctx context.Context, other, r *remote) error {
	keys := []string{other.outagesKey, r.notesKey}
	claim := int64(0)
	for {
		reply, err := other.run(ctx, other.send, &script.ReadNotes, keys, s.opts.window(),
			r.name, strconv.FormatInt(claim, 10), micros(s.opts.Timeout), strconv.Itoa(notesAtOnce))
		if err != nil {
			return err
		}
		if len(reply.rest)%2 != 1 {
			return errReply
		}
		if claim, _ = reply.rest[0].(int64); claim == 0 {
			return errClaimed
		}
		args := []string{r.name, "0"}
		var places []string
		all := false
		for _, field := range reply.rest[1:] {
			text, ok := field.(string)
			if !ok {
				return errReply
			}
			if len(args)%2 == 0 {
				places = append(places, text)
				all = all || text == script.AllNotes
			}
			args = append(args, text)
		}
		if all {
			err = s.emptyOut(ctx, r)
		} else if len(places) > 0 {
			_, err = r.erase(ctx, places)
		}
		if err != nil {
			return err
		}
		over := len(places) < notesAtOnce
		if over {
			args[1] = "1"
		}
		if _, err := other.run(ctx, other.send, &script.Forget, keys, s.opts.window(), args...); err != nil || over {
			return err
		}
	}
}

// emptyOut makes everything that r holds a miss.
func (s *shardSet) emptyOut(ctx context.Context, r *remote) error {
	a, err := s.hello(ctx, r, r.send, greeting{})
	if err != nil {
		return err
	}
	return s.raise(ctx, r, r.send, a.epoch)
}

// erase deletes keys as Delete does, whatever the breaker thinks of the shard, and
// returns the sequence of that.
func (r *remote) erase(ctx context.Context, places []string) (sequence int64, err error) {
	ctx, cancel := r.deadlines.limit(ctx)
	defer cancel()
	if err := r.ready(ctx); err != nil {
		return 0, err
	}
	reply, err := r.run(ctx, r.send, &script.Write, places, r.opts.window(), r.erasure(ctx, len(places))...)
	if err != nil {
		return 0, err
	}
	if reply.epoch == 0 {
		return 0, ErrLate
	}
	return reply.sequence, nil
}

// erasure is the arguments of a write that deletes n keys.
func (r *remote) erasure(ctx context.Context, n int) []string {
	args := []string{strconv.FormatInt(r.deadline(ctx), 10), r.channel}
	for range n {
		args = append(args, "0", "")
	}
	return args
}

// emptied waits until no notes for r lie at other, and returns what that one says.
func (s *shardSet) emptied(ctx context.Context, other, r *remote) (*greeted, error) {
	for {
		asking, cancel := context.WithTimeout(ctx, s.opts.Timeout*7/10)
		a, err := s.hello(asking, other, other.send, greeting{age: s.opts.Heartbeat / 2, watch: !other.out.Load()})
		cancel()
		if err != nil || a.notes(r) == 0 || s.off.notes {
			return a, err
		}
		switch err := s.clearNotes(ctx, other, r); {
		case errors.Is(err, errClaimed):
			wait(ctx, probeLeast)
		case err != nil:
			return nil, err
		}
	}
}

// clearBehind clears the notes of other for r, which is in use: late ones, of a
// process that does not reach it.
func (s *shardSet) clearBehind(other, r *remote) {
	o := &other.outages
	o.mu.Lock()
	busy := o.reading[r]
	o.reading[r] = true
	o.mu.Unlock()
	if busy {
		return
	}
	s.begin(func() {
		ctx, cancel := context.WithTimeout(s.ctx, max(s.opts.Heartbeat, s.opts.Timeout))
		defer cancel()
		s.clearNotes(ctx, other, r) // the next heartbeat tries again
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.reading, r)
	})
}

// owed are keys whose write at a shard failed: notes are to be left for them, so
// that an old value does not outlast the failure.
type owed struct {
	mu     sync.Mutex
	places map[string]struct{} // script.AllNotes for every one
	paying bool
}

// owe has notes left for keys whose write failed where the route leads.
func (s *shardSet) owe(rt route, places []string) {
	rs := []*remote{rt.remote}
	if rt.stand != nil {
		rs = append(rs, rt.stand.ahead...)
	}
	if s.off.notes {
		return
	}
	for _, r := range rs {
		o := &r.owed
		o.mu.Lock()
		for _, place := range places {
			if len(o.places) >= script.MostNotes {
				place = script.AllNotes
			}
			o.places[place] = struct{}{}
		}
		paying := o.paying
		o.paying = true
		o.mu.Unlock()
		if !paying {
			s.begin(func() { s.pay(r) })
		}
	}
}

// pay leaves the notes that are owed for r.
func (s *shardSet) pay(r *remote) {
	for s.ctx.Err() == nil {
		o := &r.owed
		o.mu.Lock()
		if len(o.places) == 0 {
			o.paying = false
			o.mu.Unlock()
			return
		}
		taken := o.places
		o.places = map[string]struct{}{}
		o.mu.Unlock()
		failed := false
		for to, places := range s.holders(r, taken) {
			for len(places) > 0 {
				n := min(len(places), notesAtOnce)
				if s.leave(to, r, places[:n]) == nil {
					places = places[n:]
					continue
				}
				failed = true
				o.mu.Lock()
				for _, place := range places {
					o.places[place] = struct{}{}
				}
				o.mu.Unlock()
				break
			}
		}
		if failed {
			wait(s.ctx, s.opts.Heartbeat/16)
		}
	}
}

// holders sorts places by the next shards in their walks that are not out; r itself
// where there is none.
func (s *shardSet) holders(r *remote, places map[string]struct{}) map[*remote][]string {
	holders := map[*remote][]string{}
	rs := s.routing.Load()
	prefix := len(s.opts.Namespace) + 1
	for place := range places {
		to := r
		for _, i := range rs.whole.AppendN(nil, place[min(prefix, len(place)):], len(rs.remotes)) {
			if other := rs.remotes[i]; other != r && !other.out.Load() {
				to = other
				break
			}
		}
		holders[to] = append(holders[to], place)
	}
	return holders
}

// leave leaves notes for r at another shard. Where that is r itself the keys are
// deleted.
func (s *shardSet) leave(at, r *remote, places []string) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
	defer cancel()
	if at == r {
		if slices.Contains(places, script.AllNotes) {
			return s.emptyOut(ctx, r)
		}
		_, err := r.erase(ctx, places)
		return err
	}
	if err := at.ready(ctx); err != nil {
		return err
	}
	rt := route{remote: at, stand: &stand{ahead: []*remote{r}}}
	keys, args := rt.past([]int64{0}, places, at.erasure(ctx, len(places)))
	reply, err := at.run(ctx, at.send, script.Write.Stand, keys, s.opts.window(), args...)
	if err == nil && reply.epoch == 0 {
		err = ErrLate
	}
	return err
}

// leftNotes remembers that notes of this process lie where the route leads.
func (rt route) leftNotes() {
	if rt.stand == nil {
		return
	}
	o := &rt.outages
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range rt.stand.ahead {
		if _, ok := o.left[r]; !ok {
			o.left[r] = o.since
		}
	}
}

// returningAhead are the shards that the route's one stands in for and that are about
// to be taken in again.
func (rt route) returningAhead() (list []*remote) {
	if rt.stand == nil {
		return nil
	}
	for _, r := range rt.stand.ahead {
		if r.returning.Load() > 0 {
			list = append(list, r)
		}
	}
	return list
}

// echo deletes keys that were written at their owner where others, who have
// declared it out, look for them. It is done as well as can be: what is there
// lives for Options.FailoverTTL at most.
func (s *shardSet) echo(ctx context.Context, r *remote, keys, places []string) {
	if now() >= r.declared.Load() {
		return
	}
	at := map[*remote][]string{}
	rs := s.routing.Load()
	for i, key := range keys {
		behind := false
		for _, node := range rs.whole.AppendN(nil, key, len(rs.remotes)) {
			next := rs.remotes[node]
			if !behind || next.out.Load() {
				behind = behind || next == r
				continue
			}
			at[next] = append(at[next], places[i])
			if now() >= next.declared.Load() {
				break
			}
		}
	}
	var wg sync.WaitGroup
	for next, places := range at {
		wg.Go(func() { next.erase(ctx, places) })
	}
	wg.Wait()
}
