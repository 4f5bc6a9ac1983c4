package tiercache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// Which shards there are is a list with a number, kept on each of them. A process
// without the latest one is told so by whatever it reads and writes, takes it on,
// and tries again. Before the first AddShard or RemoveShard there is no list, and
// each process goes by what New was given. Decision 0008 has the protocol.

// Members is which shards there are, as this process sees it.
type Members struct {
	Shards []string // in the order of their names
	List   int64    // the number of the list that they are from; 0 for what New was given

	// Missing are shards of the list that this process was not given: others stand in
	// for them until AddShard.
	Missing []string

	// Given is the fingerprint of the ring that this process was given, by New, AddShard
	// and RemoveShard. Others are those of other processes, of the last two heartbeats: while
	// there are some, processes are configured differently.
	Given  uint64
	Others []uint64
}

// Members tells which shards there are.
func (c *Cache[V]) Members() Members {
	rs := c.routing.Load()
	m := Members{List: rs.list}
	for _, r := range rs.remotes {
		m.Shards = append(m.Shards, r.name)
		if p, ok := r.shard.(*pending); ok && p.shard.Load() == nil {
			m.Missing = append(m.Missing, r.name)
		}
	}
	m.Given, m.Others = c.given.prints(c.opts.window())
	return m
}

// AddShard adds a shard for all processes that share the cache, and waits until the
// shards carry the new list. What is on it counts no more: it may be from an earlier
// time. Keys move to it alone, their share; for Options.Handover what it does not have
// is asked of the shard that had it.
//
// Each process calls AddShard, since each needs a Shard of its own; the first call
// makes the change. A process that has not yet called it goes on without the shard, as
// if that were out. With an error (a *ShardError for each shard that failed, joined) it
// may have been added for some; to call it again is safe.
func (c *Cache[V]) AddShard(ctx context.Context, name string, shard Shard) error {
	if err := c.takes(name, shard); err != nil {
		return err
	}
	if err := c.closed(); err != nil {
		return err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	if whole := c.Ring(); !slices.Contains(c.Members().Shards, name) {
		if _, err := whole.With(ring.Node{Name: name, Weight: 1}); err != nil { // before the shard is emptied
			return fmt.Errorf("tiercache: add: %w", err)
		}
	}
	c.given.add(name, shard, c.opts.Ring)
	for range maxProposals {
		c.learn(ctx)
		rs := c.routing.Load()
		if i, ok := rs.whole.Find(name); ok {
			if p, ok := rs.remotes[i].shard.(*pending); ok {
				p.shard.CompareAndSwap(nil, &shard)
			}
			return nil
		}
		r := newRemote(name, shard, c.shardSet)
		if err := c.emptyOut(ctx, r); err != nil {
			return &ShardError{name, "add", err}
		}
		if err := c.propose(ctx, rs, append(rs.names(), name), rs.names(), r); !errors.Is(err, errListed) {
			return err
		}
	}
	return errListed
}

// RemoveShard removes a shard for all processes that share the cache, and waits until
// the others carry the new list. Keys of the shard alone move. For Options.Handover it is
// asked for what the next ones do not have, if it answers: its client is best kept open as
// long. Each process calls it; the first call makes the change.
//
// Where the shard was added by AddShard, what all others hold counts no more from then on:
// among it is what they had of its keys before they moved there.
func (c *Cache[V]) RemoveShard(ctx context.Context, name string) error {
	if err := c.closed(); err != nil {
		return err
	}
	c.changing.Lock()
	defer c.changing.Unlock()
	for range maxProposals {
		c.learn(ctx)
		rs := c.routing.Load()
		i, ok := rs.whole.Find(name)
		if !ok {
			c.given.remove(name, c.opts.Ring)
			return nil
		}
		if len(rs.remotes) == 1 {
			return fmt.Errorf("tiercache: remove: %q is the last shard", name)
		}
		rest := slices.DeleteFunc(rs.names(), func(other string) bool { return other == name })
		err := c.propose(ctx, rs, rest, rs.names(), nil)
		if errors.Is(err, errListed) {
			continue
		}
		if err == nil {
			c.given.remove(name, c.opts.Ring)
			c.tell(ctx, rs.remotes[i]) // for who reads there; it may be gone
		}
		return err
	}
	return errListed
}

const maxProposals = 5

// errListed means that somebody else changed the list meanwhile.
var errListed = errors.New("tiercache: others change the list of shards at the same time: try again")

// A list is which shards there are, as shards keep it.
type list struct {
	number int64
	Shards []string `json:"shards"`
	Before []string `json:"before,omitempty"` // while values are handed over

	// Joined are those of Shards that were added. Keys have moved to them, and what the
	// shards that had these still hold of them counts no more; so when one of Joined is
	// removed, all others begin a new epoch with the list that says so, the last of which
	// is Fresh.
	Joined []string `json:"joined,omitempty"`
	Fresh  int64    `json:"fresh,omitempty"`
}

func (l *list) text() string {
	text, _ := json.Marshal(l)
	return string(text)
}

func (rs *routing) names() []string {
	names := make([]string, len(rs.remotes))
	for i, r := range rs.remotes {
		names[i] = r.name
	}
	return names
}

// asList is the list that the routing is of.
func (rs *routing) asList() *list {
	l := &list{number: rs.list, Shards: rs.names(), Joined: rs.joined, Fresh: rs.fresh}
	if rs.before != nil {
		for i := range rs.before.Len() {
			l.Before = append(l.Before, rs.before.Name(i))
		}
	}
	return l
}

// propose makes a new list of shards in the place of rs's, and has them carry it: those
// that are in use, and extra. It is errListed if one has a later one than rs's.
func (s *shardSet) propose(ctx context.Context, rs *routing, shards, before []string, extra *remote) error {
	number := max(time.Now().UnixMicro(), rs.list) + 1 + rand.Int64N(1000)
	l := &list{number: number, Shards: slices.Sorted(slices.Values(shards)), Before: before, Fresh: rs.fresh}
	for _, name := range l.Shards {
		if _, was := rs.whole.Find(name); !was || slices.Contains(rs.joined, name) {
			l.Joined = append(l.Joined, name)
		}
	}
	for _, name := range rs.joined {
		if !slices.Contains(l.Shards, name) {
			l.Fresh = number
		}
	}
	remotes := slices.DeleteFunc(slices.Clone(rs.remotes), func(r *remote) bool { return r.out.Load() })
	carry := func(r *remote) error {
		a, err := s.list(ctx, r, l, rs.list)
		switch {
		case err != nil:
			return &ShardError{r.name, "list", err}
		case a.number != l.number || a.text() != l.text(): // two may have thought of one number
			return errListed
		}
		return nil
	}
	errs := make([]error, len(remotes))
	var wg sync.WaitGroup
	for i, r := range remotes {
		wg.Go(func() { errs[i] = carry(r) })
	}
	wg.Wait()
	// The new shard comes last: a list that the others refused may not lie there, with a
	// number above that of the list which they take in its place.
	if extra != nil && !slices.Contains(errs, errListed) {
		errs = append(errs, carry(extra))
	}
	if slices.Contains(errs, errListed) {
		return errListed
	}
	if err := s.adopt(l, now(), 0); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// A listing is what a shard says of the list.
type listing struct {
	list
	age    time.Duration // for how long it has lain there
	prints []uint64      // of what processes were given
	*scriptReply
}

// list tells r the list l, which may replace those up to the number over, and learns the
// one that r has.
func (s *shardSet) list(ctx context.Context, r *remote, l *list, over int64) (*listing, error) {
	ctx, cancel := r.deadlines.limit(ctx)
	defer cancel()
	text := ""
	if l.number > 0 {
		text = l.text()
	}
	print, _ := s.given.prints(0)
	reply, err := r.run(ctx, r.send, &script.List, []string{s.opts.Namespace + "#list", s.opts.Namespace + "#given"}, s.opts.window(),
		strconv.FormatInt(l.number, 10), text, strconv.FormatUint(print, 16), micros(s.opts.window()), strconv.FormatInt(over, 10), r.channel)
	if err != nil {
		return nil, err
	}
	if len(reply.rest) < 3 {
		return nil, errReply
	}
	a := &listing{scriptReply: reply}
	us, _ := reply.rest[1].(int64)
	a.age = time.Duration(us) * time.Microsecond
	held, _ := reply.rest[2].(string)
	a.number, _ = reply.rest[0].(int64)
	raise(&r.listed, a.number)
	if a.number > 0 {
		if err := json.Unmarshal([]byte(held), &a.list); err != nil {
			return nil, fmt.Errorf("the list of shards: %w", err)
		}
	}
	for _, field := range reply.rest[3:] {
		text, _ := field.(string)
		if n, err := strconv.ParseUint(text, 16, 64); err == nil && n != print {
			a.prints = append(a.prints, n)
		}
	}
	return a, nil
}

// tell exchanges lists with r, and takes on a later one.
func (s *shardSet) tell(ctx context.Context, r *remote) error {
	rs := s.routing.Load()
	a, err := s.list(ctx, r, rs.asList(), anyList)
	if err != nil {
		return err
	}
	if s.given.saw(a.prints, s.opts.window()) {
		s.events.tell(EventDiffer, r.name, "", nil)
	}
	if a.number == rs.list && a.number > 0 {
		rs.handover.carried(a.sent-int64(a.age), s.opts)
	}
	if a.number > rs.list {
		return s.adopt(&a.list, a.sent, a.age)
	}
	return nil
}

// freshened has r begin a new epoch where the list asks for one, before anything there
// counts.
func (s *shardSet) freshened(ctx context.Context, r *remote) error {
	fresh := s.routing.Load().fresh
	if r.listed.Load() >= fresh {
		return nil
	}
	return s.tell(ctx, r)
}

// learn takes on the latest list that any shard has.
func (s *shardSet) learn(ctx context.Context) {
	s.others(nil, func(r *remote) { s.tell(ctx, r) })
}

// adopt goes by the list from now on. It has been on a shard for the given time.
func (s *shardSet) adopt(l *list, at int64, age time.Duration) error {
	s.mu.Lock()
	old := s.routing.Load()
	if l.number <= old.list {
		s.mu.Unlock()
		return nil
	}
	placed, err := ring.New(ring.Nodes(l.Shards...), &ring.Options{Placement: s.opts.Ring})
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("tiercache: the list of shards: %w", err)
	}
	known := map[string]*remote{}
	for _, r := range old.handover.remotes {
		if r != nil {
			known[r.name] = r
		}
	}
	for _, r := range old.remotes {
		known[r.name] = r
	}
	rs := &routing{whole: placed, live: placed, list: l.number, joined: l.Joined, fresh: l.Fresh}
	var fresh []*remote
	for i := range placed.Len() {
		name := placed.Name(i)
		r := known[name]
		if r == nil || r.retired.Load() {
			r = s.newMember(name)
			fresh = append(fresh, r)
		}
		rs.remotes = append(rs.remotes, r)
		known[name] = r
	}
	rs.handover = newHandover(l, known, s.opts, at-int64(age))
	s.routing.Store(rs)
	s.reroute()
	s.mu.Unlock()
	for _, r := range old.remotes {
		// Values of keys that have moved are among those in L1.
		r.listener.mu.Lock()
		r.end(endList, nil)
		r.listener.mu.Unlock()
		if _, stays := placed.Find(r.name); !stays {
			s.begin(func() { s.retire(r, rs) })
		}
	}
	for _, r := range fresh {
		s.start(r)
	}
	s.events.tell(EventMembers, "", "", nil)
	return nil
}

// retire lets r go when no values are handed over from it any more.
func (s *shardSet) retire(r *remote, rs *routing) {
	for s.ctx.Err() == nil && s.routing.Load().list == rs.list && now() < rs.handover.deletes.Load() {
		wait(s.ctx, s.opts.Heartbeat)
	}
	if _, back := s.routing.Load().whole.Find(r.name); !back {
		r.retired.Store(true)
		r.cancel()
	}
}

// newMember is a shard of a list: one that was given, or one to come.
func (s *shardSet) newMember(name string) *remote {
	shard := s.given.named(name)
	if shard != nil {
		return newRemote(name, shard, s)
	}
	r := newRemote(name, new(pending), s)
	r.out.Store(true)
	r.contact.Add(-int64(time.Millisecond)) // before any outage that this process declares
	r.health.stay(errNotGiven)
	return r
}

// start begins to listen to r, and to probe it.
func (s *shardSet) start(r *remote) {
	s.begin(func() { r.listen(r.ctx) })
	if !s.off.health {
		s.begin(func() { s.watch(r.ctx, r) })
	}
}

// pending is in the place of a shard that this process was not given.
type pending struct{ shard atomic.Pointer[Shard] }

var errNotGiven = errors.New("the shard is in the list, but this process was not given it: AddShard")

func (p *pending) Do(ctx context.Context, cmd []string) (any, error) {
	if s := p.shard.Load(); s != nil {
		return (*s).Do(ctx, cmd)
	}
	return nil, errNotGiven
}

func (p *pending) Pipeline(ctx context.Context, cmds [][]string) []any {
	if s := p.shard.Load(); s != nil {
		return (*s).Pipeline(ctx, cmds)
	}
	replies := make([]any, len(cmds))
	for i := range replies {
		replies[i] = errNotGiven
	}
	return replies
}

func (p *pending) Tx(ctx context.Context, cmds [][]string) ([]any, error) {
	if s := p.shard.Load(); s != nil {
		return (*s).Tx(ctx, cmds)
	}
	return nil, errNotGiven
}

func (p *pending) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(channel, payload string)) error {
	if s := p.shard.Load(); s != nil {
		return (*s).Subscribe(ctx, channels, onReady, onMessage)
	}
	return errNotGiven
}

func (p *pending) Track(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(channel, payload string), onChange func([]string)) error {
	if s := p.shard.Load(); s != nil {
		return (*s).(Tracker).Track(ctx, channels, prefix, onReady, onMessage, onChange)
	}
	return errNotGiven
}

// given is what this process was given, and what others say of theirs.
type given struct {
	mu     sync.Mutex
	shards map[string]Shard
	print  uint64
	seen   map[uint64]int64 // fingerprints of others, and when they were last heard of, ns
}

func (g *given) named(name string) Shard {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shards[name]
}

func (g *given) add(name string, shard Shard, placement ring.Placement) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shards[name] = shard
	g.reckon(placement)
}

func (g *given) remove(name string, placement ring.Placement) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.shards, name)
	g.reckon(placement)
}

func (g *given) reckon(placement ring.Placement) {
	g.print = 0
	if placed, err := ring.New(ring.Nodes(slices.Collect(maps.Keys(g.shards))...), &ring.Options{Placement: placement}); err == nil {
		g.print = placed.Fingerprint()
	}
}

// prints are this process's fingerprint, and those of others within the window.
func (g *given) prints(window time.Duration) (own uint64, others []uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for print, at := range g.seen {
		if print != g.print && now()-at <= int64(window) {
			others = append(others, print)
		}
	}
	slices.Sort(others)
	return g.print, others
}

// saw takes in fingerprints of others, and reports whether some are new
// within the window.
func (g *given) saw(prints []uint64, window time.Duration) (differs bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, print := range prints {
		at, known := g.seen[print]
		differs = differs || !known || now()-at > int64(window)
		g.seen[print] = now()
	}
	return differs
}
