package tiercache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/singleflight"

	"github.com/shardkit/shardkit/tiercache/internal/script"
)

// A remote is one shard as a cache sees it.
type remote struct {
	name   string
	shard  Shard
	opts   *Options
	off    mechanisms
	events *events
	set    *shardSet // which it is of

	ctx    context.Context // ends when it is removed
	cancel context.CancelFunc

	stateKey, channel, outagesKey, notesKey string

	clock     shardClock
	deadlines deadlines
	brief     deadlines // of what can be had elsewhere
	hellos    singleflight.Group
	breaker   atomic.Pointer[gobreaker.TwoStepCircuitBreaker[any]]
	stats     remoteStats

	health     health
	out        atomic.Bool  // others stand in for it
	returning  atomic.Int32 // how many are about to take it in again
	retired    atomic.Bool  // it was removed
	listed     atomic.Int64 // the number of the list that it carries, as far as is known
	admissions singleflight.Group
	contact    atomic.Int64 // when it last answered while it served, ns
	declared   atomic.Int64 // until when somebody else has it out, ns, as is known
	outages    outages      // of others, as it knows them
	owed       owed

	// A hit in L1 asks for these two, and nothing else.
	generation atomic.Uint64 // of the view
	trusted    atomic.Int64  // until when the view counts, ns

	// unbroken is the view since which every write was heard, as long as the shard
	// could be.
	unbroken atomic.Uint64

	view     atomic.Pointer[view]
	listener listener
}

// mechanisms that tests switch off, to see that they are missed.
type mechanisms struct {
	sequence, marker, deadline, epoch, trust, stripes, verify, health, notes, outage, copies bool
}

func newRemote(name string, shard Shard, set *shardSet) *remote {
	opts := set.opts
	r := &remote{
		name: name, shard: shard, opts: opts, off: set.off, events: set.events, set: set,
		stateKey:   opts.Namespace + "#state",
		channel:    opts.Namespace + "#notices",
		outagesKey: opts.Namespace + "#outages",
		notesKey:   opts.Namespace + "#notes:" + name,
	}
	r.outages.own, r.outages.left, r.outages.reading = map[*remote]standing{}, map[*remote]int64{}, map[*remote]bool{}
	r.owed.places = map[string]struct{}{}
	r.health.failing = make(chan error, 1)
	r.health.since = time.Now()
	r.contact.Store(now())
	r.declared.Store(math.MinInt64 / 2)
	r.deadlines.timeout, r.brief.timeout = opts.Timeout, opts.Timeout/4
	r.view.Store(r.newView())
	r.listener.kick = make(chan struct{}, 1)
	r.mendBreaker()
	r.ctx, r.cancel = context.WithCancel(set.ctx)
	return r
}

// mendBreaker lets commands pass again.
func (r *remote) mendBreaker() {
	name, events := r.name, r.events
	old := r.breaker.Swap(gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Timeout:    r.opts.Heartbeat,
		IsExcluded: func(err error) bool { return err == errImpatient },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			switch {
			case from == gobreaker.StateClosed:
				events.tell(EventBreakerOpen, name, "", nil)
			case to == gobreaker.StateClosed:
				events.tell(EventBreakerShut, name, "", nil)
			}
		},
	}))
	if old != nil && old.State() != gobreaker.StateClosed {
		events.tell(EventBreakerShut, name, "", nil)
	}
}

// epoch0 is the origin of the process's monotonic times.
var epoch0 = time.Now()

// now is the process's monotonic clock, in ns. It is read for each hit, not
// kept by a ticker: in a process that was stopped, readers may run before a ticker.
func now() int64 { return int64(time.Since(epoch0)) }

// counts reports whether what L1 took under the generation counts now.
func (r *remote) counts(generation uint64, now int64) bool {
	return r.generation.Load() == generation && (now < r.trusted.Load() || r.off.trust)
}

// synced is the view under which what is read from now on may enter L1; nil
// while there is none.
func (r *remote) synced() *view {
	if v := r.view.Load(); v.epoch.Load() != 0 {
		return v
	}
	return nil
}

// send runs one command, within the deadline.
func (r *remote) send(ctx context.Context, cmd []string) (any, error) {
	ctx, cancel := r.deadlines.limit(ctx)
	defer cancel()
	start := now()
	reply, err := r.shard.Do(ctx, cmd)
	r.stats.record(now()-start, err)
	return reply, err
}

// do is send if the breaker lets it.
func (r *remote) do(ctx context.Context, cmd []string) (any, error) {
	done, err := r.breaker.Load().Allow()
	if err != nil {
		r.stats.refused.Add(1)
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	start := now()
	reply, err := r.send(ctx, cmd)
	switch {
	case err == nil || answered(err):
		if done(nil); err == nil {
			r.contact.Store(now())
		} else if refusesWrites(err) {
			r.health.suspect(err)
		}
	case ctx.Err() != nil && (ctx.Err() == context.Canceled || now()-start < int64(r.opts.Timeout)/5):
		done(errImpatient)
	default:
		done(err)
		r.health.suspect(err)
	}
	return reply, err
}

// errImpatient tells the breaker that a caller left too early to say anything
// about the shard.
var errImpatient = errors.New("the caller left")

// answered reports whether the server itself refused the command, and is up.
func answered(err error) bool {
	word, _, _ := strings.Cut(err.Error(), " ")
	if word == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return false
	}
	return word != "LOADING" && word != "MASTERDOWN" && word != "BUSY"
}

// refusesWrites reports whether the server takes no writes at all.
func refusesWrites(err error) bool {
	switch word, _, _ := strings.Cut(err.Error(), " "); word {
	case "OOM", "READONLY", "MISCONF", "NOREPLICAS":
		return true
	}
	return false
}

// run is runListed for what does not depend on the list of shards.
func (r *remote) run(ctx context.Context, do sender, sc *script.Script, keys []string, age time.Duration, args ...string) (*scriptReply, error) {
	return r.runListed(ctx, do, sc, keys, age, anyList, args)
}

// anyList is above every list's number.
const anyList = 1<<53 - 1

// runListed runs a script over the state and the keys, by do or send. The script
// compares run ids if that was last done the given time ago, or before, and does nothing
// if the shard knows of a later list. It returns the reply's
// elements, of which the first three are the epoch, the sequence and the
// shard's clock in us.
func (r *remote) runListed(ctx context.Context, do sender, sc *script.Script, keys []string, age time.Duration, list int64, args []string) (*scriptReply, error) {
	cmd := make([]string, 0, 6+len(keys)+len(args))
	cmd = append(cmd, "EVALSHA", sc.SHA, strconv.Itoa(1+len(keys)), r.stateKey)
	cmd = append(cmd, keys...)
	cmd = append(cmd, strconv.FormatInt(age.Microseconds(), 10))
	cmd = append(cmd, args...)
	cmd = append(cmd, strconv.FormatInt(list, 10))
	sent := now()
	reply, err := do(ctx, cmd)
	if err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
		cmd[0], cmd[1] = "EVAL", sc.Source
		sent = now()
		reply, err = do(ctx, cmd)
	}
	if err != nil {
		return nil, err
	}
	fields, ok := reply.([]any)
	if !ok || len(fields) < 3 {
		return nil, fmt.Errorf("script %s answered %T", sc.Name, reply)
	}
	s := &scriptReply{sent: sent, received: now(), rest: fields[3:]}
	for i, field := range []*int64{&s.epoch, &s.sequence, &s.us} {
		if *field, ok = fields[i].(int64); !ok {
			return nil, fmt.Errorf("script %s answered %T in place of an integer", sc.Name, fields[i])
		}
	}
	r.clock.learn(s.sent, s.received, s.us, r.opts.Heartbeat, false)
	return s, nil
}

type scriptReply struct {
	epoch, sequence, us int64
	sent, received      int64 // ns of the process
	outage              int64 // in which values there count; 0 at their owner
	rest                []any
}

// reading is a reply with values.
func (s *scriptReply) reading() *reading {
	return &reading{state: state{epoch: s.epoch, sequence: s.sequence}, known: true, sent: s.sent, at: s.received, outage: s.outage, values: s.rest}
}

// hello has the shard compare its run id with the state's, and begin a new epoch
// if it is another. Calls at one time are one.
func (r *remote) hello(ctx context.Context) (*greeted, error) {
	ch := r.hellos.DoChan("", func() (any, error) {
		return r.set.hello(context.WithoutCancel(ctx), r, r.do, greeting{watch: !r.out.Load()})
	})
	select {
	case res := <-ch:
		if res.Err != nil {
			return nil, res.Err
		}
		return res.Val.(*greeted), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ready sees to it that the shard's clock is known.
func (r *remote) ready(ctx context.Context) error {
	if r.clock.known() {
		return nil
	}
	_, err := r.hello(ctx)
	return err
}

// doubt ends the view if the shard's data is of another epoch than the view's.
func (r *remote) doubt(v *view, epoch int64) {
	if v == nil || v.epoch.Load() == epoch {
		return
	}
	r.listener.mu.Lock()
	defer r.listener.mu.Unlock()
	if r.view.Load() == v {
		r.end(endEpoch, nil)
	}
}

// A reading is what one MGET returned, at one moment of the shard.
type reading struct {
	state    state
	known    bool  // there is a state, and somebody watches the shard
	sent, at int64 // ns of the process: before it was asked, and after
	outage   int64 // in which values count; 0 at their owner
	values   []any
}

// read reads values and the state in one round trip.
func (r *remote) read(ctx context.Context, keys []string) (*reading, error) {
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	cmd := make([]string, 0, 2+len(keys))
	cmd = append(append(append(cmd, "MGET"), keys...), r.stateKey)
	for attempt := 0; ; attempt++ {
		sent := now()
		reply, err := r.do(ctx, cmd)
		if err != nil {
			return nil, err
		}
		list, ok := reply.([]any)
		if !ok || len(list) != len(keys)+1 {
			return nil, fmt.Errorf("MGET of %d keys answered %T of %d", len(keys)+1, reply, len(list))
		}
		rd := &reading{sent: sent, at: now(), values: list[:len(keys)]}
		text, _ := list[len(keys)].(string)
		if rd.state, rd.known = parseState(text); !rd.known {
			r.listener.hurry()
			return rd, nil
		}
		// Nobody has watched it for a while: it may be back from an outage, or with an old snapshot's state.
		if r.off.verify || r.clock.latest(rd.at)-rd.state.verified*1000 < int64(r.opts.window()) {
			return rd, r.judge(ctx, rd)
		}
		if attempt > 0 {
			rd.known = false
			return rd, nil
		}
		if err := r.set.admit(ctx, r); err != nil {
			return nil, err
		}
	}
}

// remaining is the rest of a life that ends at expiry (ms by the shard's clock),
// at now. At least, that is: clocks are known within a round trip.
func (r *remote) remaining(expiry, now int64) time.Duration {
	return time.Duration(expiry*1e6 - r.clock.latest(now))
}

// deadline is when a write of ctx is to take no effect any more, in us by the
// shard's clock: ctx's deadline, or earlier.
func (r *remote) deadline(ctx context.Context) int64 {
	if r.off.deadline {
		return 1 << 52
	}
	left := r.opts.Timeout
	if d, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(d))
	}
	return r.clock.earliest(now()+int64(left)) / 1000
}
