package tiercache

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// While a shard is out for a process, that process declares so at every shard it
// reaches: the outage has a number there. The next shard in a key's walk stands in
// only for who declared it, and what is written there counts in that outage alone.
// Decision 0006 has the protocol.

// A standing is an outage that this process has declared at some shard.
type standing struct {
	number int64
	until  int64 // ns of this process
}

// outages are those that a shard knows of, as it last said.
type outages struct {
	mu      sync.Mutex
	own     map[*remote]standing // declared by this process
	since   int64                // from when on no note there was lost
	left    map[*remote]int64    // since, when this process left its first note for that shard
	reading map[*remote]bool     // its notes are being read
}

// A greeting is what a process says to a shard by the script hello.
type greeting struct {
	age     time.Duration // of the last comparison of run ids, for another one
	watch   bool          // the process uses the shard
	cleared int64         // VERIFIED of the shard, which holds nothing old now
}

// A greeted is the answer.
type greeted struct {
	*scriptReply
	verified int64
	watched  bool
	since    int64
	outages  []declared
}

// declared is an outage of a shard, or notes for it, at another one.
type declared struct {
	remote *remote // nil if it is not known here
	number int64
	left   time.Duration
	notes  int64
}

// hello greets r, declares at it all other shards that are out, and learns what it
// knows about them.
func (s *shardSet) hello(ctx context.Context, r *remote, do sender, g greeting) (*greeted, error) {
	watch := "0"
	if g.watch {
		watch = "1"
	}
	args := []string{micros(s.opts.window()), watch, strconv.FormatInt(g.cleared, 10), micros(s.opts.standing())}
	var declares []*remote
	for _, other := range s.remotes() {
		if other != r && other.out.Load() {
			declares = append(declares, other)
			args = append(args, other.name, micros(time.Duration(now()-other.contact.Load())))
		}
	}
	reply, err := r.run(ctx, do, &script.Hello, []string{r.outagesKey}, g.age, args...)
	if err != nil {
		return nil, err
	}
	a := &greeted{scriptReply: reply}
	rest := reply.rest
	if len(rest) < 3 || len(rest)%4 != 3 {
		return nil, errReply
	}
	integers := func(list []any, fields ...*int64) error {
		for i, field := range fields {
			var ok bool
			if *field, ok = list[i].(int64); !ok {
				return errReply
			}
		}
		return nil
	}
	var watched int64
	if err := integers(rest, &a.verified, &watched, &a.since); err != nil {
		return nil, err
	}
	a.watched = watched == 1
	for rest = rest[3:]; len(rest) > 0; rest = rest[4:] {
		name, _ := rest[0].(string)
		d := declared{remote: s.named(name)}
		var left int64
		if err := integers(rest[1:], &d.number, &left, &d.notes); err != nil {
			return nil, err
		}
		d.left = time.Duration(left) * time.Microsecond
		a.outages = append(a.outages, d)
	}
	s.heard(r, a, declares)
	return a, nil
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

// standing is how long a declaration stands after it was last made.
func (o *Options) standing() time.Duration { return 3 * o.Heartbeat }

// heard takes in what r said.
func (s *shardSet) heard(r *remote, a *greeted, declares []*remote) {
	if !r.out.Load() {
		raise(&r.contact, a.received)
	}
	o := &r.outages
	o.mu.Lock()
	lost := o.since != 0 && a.since > o.since
	o.since = a.since
	clear(o.own)
	for _, d := range a.outages {
		for _, other := range declares {
			if d.remote == other {
				o.own[other] = standing{d.number, a.sent + int64(d.left)}
			}
		}
	}
	o.mu.Unlock()
	for _, d := range a.outages {
		if d.remote == nil || d.remote == r || d.remote.out.Load() {
			continue
		}
		if d.left > 0 {
			raise(&d.remote.declared, a.sent+int64(d.left))
		}
		if d.notes > 0 && !s.off.notes {
			s.clearBehind(r, d.remote)
		}
	}
	if lost {
		s.broke(r)
	}
}

// notes is how many lie there for r.
func (a *greeted) notes(r *remote) int64 {
	for _, d := range a.outages {
		if d.remote == r {
			return d.notes
		}
	}
	return 0
}

// numbers are those of the outages of ahead at r, declared if they do not stand, or
// anyhow: r said that they are others.
func (s *shardSet) numbers(ctx context.Context, r *remote, ahead []*remote, anyhow bool) ([]int64, error) {
	for attempt := 0; ; attempt++ {
		var numbers []int64
		t := now()
		r.outages.mu.Lock()
		for _, other := range ahead {
			if st, ok := r.outages.own[other]; ok && t < st.until {
				numbers = append(numbers, st.number)
			}
		}
		r.outages.mu.Unlock()
		switch {
		case len(numbers) == len(ahead) && (!anyhow || attempt > 0):
			return numbers, nil
		case attempt > 0:
			return nil, errRouted
		}
		if _, err := s.hello(ctx, r, r.do, greeting{age: s.opts.window(), watch: !r.out.Load()}); err != nil {
			return nil, err
		}
	}
}

// errRouted means that while an operation was on its way to a shard its keys got
// another one: the owner came back, or shards were added or removed.
var errRouted = errors.New("the shard does not answer for the key any more: try again")

// errUnwatched means that nobody can tell yet whether a shard's values are old.
var errUnwatched = errors.New("the shard was away, and is not known to be rid of old values yet: try again")

// call runs the script of an operation where its route leads.
func (rt route) call(ctx context.Context, sc *script.Script, keys []string, args ...string) (*scriptReply, error) {
	if err := rt.set.freshened(ctx, rt.remote); err != nil {
		return nil, err
	}
	var outage int64
	for attempt := 0; ; attempt++ {
		run, k, a := sc, keys, args
		if rt.stand != nil {
			numbers, err := rt.set.numbers(ctx, rt.remote, rt.stand.ahead, attempt > 0)
			if err != nil {
				return nil, err
			}
			run = sc.Stand
			k, a = rt.past(numbers, keys, args)
			outage = greatest(numbers)
		}
		reply, err := rt.runListed(ctx, rt.do, run, k, rt.opts.window(), rt.list, a)
		if err != nil {
			return nil, err
		}
		reply.outage = outage
		if reply.epoch != 0 || reply.sequence == replyLate {
			return reply, nil
		}
		if reply.sequence == replyListed {
			if err := rt.set.tell(ctx, rt.remote); err != nil {
				return nil, err
			}
			return nil, errRouted
		}
		if reply.sequence == replyUnwatched {
			if attempt > 0 {
				return nil, errUnwatched
			}
			if err := rt.set.admit(ctx, rt.remote); err != nil {
				return nil, err
			}
		} else if attempt > 1 {
			return nil, errRouted
		}
	}
}

// What a script that did nothing has in the place of the sequence.
const (
	replyLate = iota
	replyClosed
	replyUnwatched
	replyListed
)

// past puts the outages of the shards that are stood in for before keys and args.
func (rt route) past(numbers []int64, keys, args []string) (k, a []string) {
	k = append(k, rt.outagesKey)
	a = append(a, strconv.Itoa(len(rt.stand.ahead)))
	for i, r := range rt.stand.ahead {
		k = append(k, r.notesKey)
		a = append(a, r.name, strconv.FormatInt(numbers[i], 10))
	}
	return append(k, keys...), append(a, args...)
}

// greatest is the number that values have: that of the youngest outage.
func greatest(numbers []int64) (n int64) {
	for _, number := range numbers {
		n = max(n, number)
	}
	return n
}

// read reads values where the route leads.
func (rt route) read(ctx context.Context, keys []string) (*reading, error) {
	if rt.out.Load() { // since all are
		if err := rt.set.admit(ctx, rt.remote); err != nil {
			return nil, err
		}
	}
	if err := rt.set.freshened(ctx, rt.remote); err != nil {
		return nil, err
	}
	var outage int64
	if rt.stand != nil {
		numbers, err := rt.set.numbers(ctx, rt.remote, rt.stand.ahead, false)
		if err != nil {
			return nil, err
		}
		outage = greatest(numbers)
	}
	rd, err := rt.remote.read(ctx, keys)
	if err != nil {
		return nil, err
	}
	if rd.state.list > rt.list {
		if err := rt.set.tell(ctx, rt.remote); err != nil {
			return nil, err
		}
		return nil, errRouted
	}
	rd.outage = outage
	return rd, nil
}

// life is how long a value may live where the route leads.
func (rt route) life(d time.Duration) time.Duration {
	if rt.stand != nil {
		return min(d, rt.opts.FailoverTTL)
	}
	return d
}

// rejoin sees to it that r holds nothing that was overwritten elsewhere while it
// was away: by deleting what the notes name, or else everything.
func (s *shardSet) rejoin(ctx context.Context, r *remote, do sender) error {
	for range 3 {
		first, err := s.hello(ctx, r, do, greeting{})
		if err != nil {
			return err
		}
		if s.vouched(ctx, r, first) {
			if first.watched {
				return nil
			}
			again, err := s.hello(ctx, r, do, greeting{cleared: first.verified})
			switch {
			case err != nil:
				return err
			case again.watched && again.epoch == first.epoch:
				return nil
			}
			continue // it was away once more
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.raise(ctx, r, do, first.epoch)
	}
	return errUnwatched
}

// vouched reports whether every other shard that may hold notes for r, as it was at
// first, has none left, and lost none.
func (s *shardSet) vouched(ctx context.Context, r *remote, first *greeted) bool {
	ctx, cancel := context.WithTimeout(ctx, 4*s.opts.Timeout)
	defer cancel()
	rs := s.routing.Load()
	if rs.list > 0 && !first.watched && r.clock.earliestAt(first.verified) < rs.since.Load()+int64(s.opts.window()) {
		return false // notes may lie at a shard that was removed meanwhile
	}
	var mu sync.Mutex
	all := true
	ask := func(other *remote) {
		o := &other.outages
		o.mu.Lock()
		since, left := o.left[r]
		o.mu.Unlock()
		if first.watched && !left && other.out.Load() {
			return // late notes of others, if any
		}
		a, err := s.emptied(ctx, other, r)
		vouches := err == nil
		if vouches && !first.watched {
			// It kept all notes since r was last watched.
			vouches = other.clock.latestAt(a.since) <= r.clock.earliestAt(first.verified)
		}
		if vouches && left {
			vouches = a.since == since
		}
		if !vouches && (!first.watched || left) {
			mu.Lock()
			all = false
			mu.Unlock()
		}
		if vouches {
			o.mu.Lock()
			delete(o.left, r)
			o.mu.Unlock()
		}
	}
	for _, gone := range rs.left() {
		gone.outages.mu.Lock()
		_, left := gone.outages.left[r]
		gone.outages.mu.Unlock()
		if left {
			ask(gone)
		}
	}
	s.others(r, ask)
	return all
}

// raise begins a new epoch at r, unless there is another already.
func (s *shardSet) raise(ctx context.Context, r *remote, do sender, epoch int64) error {
	_, err := r.run(ctx, do, &script.Raise, nil, s.opts.window(), strconv.FormatInt(epoch, 10), r.channel)
	if err != nil {
		return err
	}
	for _, other := range s.remotes() {
		o := &other.outages
		o.mu.Lock()
		delete(o.left, r)
		o.mu.Unlock()
	}
	return nil
}

// broke tells that notes at r are lost, or out of reach: whatever somebody else
// declared out may be used by this process, and hold what was overwritten at r.
func (s *shardSet) broke(r *remote) {
	t := now()
	for _, other := range s.remotes() {
		if other == r || other.out.Load() || t > other.declared.Load()+int64(s.opts.window()) {
			continue
		}
		s.begin(func() {
			for s.ctx.Err() == nil && !other.out.Load() {
				ctx, cancel := context.WithTimeout(s.ctx, s.opts.Timeout)
				a, err := s.hello(ctx, other, other.send, greeting{age: s.opts.Heartbeat, watch: true})
				if err == nil && other.clock.earliestAt(a.epoch) <= t {
					err = s.raise(ctx, other, other.send, a.epoch)
				}
				cancel()
				if err == nil {
					return
				}
				wait(s.ctx, s.opts.Heartbeat/4)
			}
		})
	}
}
