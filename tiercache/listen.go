package tiercache

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"time"
)

// A listener follows a shard's notices. Its fields are of the present view.
type listener struct {
	mu sync.Mutex
	row
	kick chan struct{} // asks for a heartbeat now
	lost bool          // it has been told, and nothing was heard since
}

// A row is the notices that came one after the other.
type row struct {
	first, last int64 // sequences, 0 before the first
	epoch       int64
	broken      bool
}

// Why a view ended.
type ending int

const (
	endLost    ending = iota // the subscription was lost
	endGap                   // a notice did not arrive
	endEpoch                 // the shard holds other data
	endBroken                // a notice could not be read
	endOut                   // others stand in for the shard
	endCleared               // all keys with a prefix were deleted, which L1 does not look for
	endList                  // the list of shards changed
	endings
)

var endingEvents = [endings]EventKind{endLost: EventLost, endGap: EventGap, endEpoch: EventEpoch, endBroken: EventGap}

func (l *listener) hurry() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// end begins a new view, under which nothing counts yet. The caller holds mu.
func (r *remote) end(why ending, err error) {
	synced := r.view.Load().epoch.Load() != 0
	if synced {
		r.stats.ended[why].Add(1)
	}
	if kind := endingEvents[why]; kind != 0 && err != ErrClosed && (synced || why == endLost && !r.listener.lost) {
		r.events.tell(kind, r.name, "", err)
		r.listener.lost = why == endLost
	}
	r.generation.Add(1)
	if why != endLost && why != endOut {
		r.unbroken.Store(r.generation.Load())
	}
	r.view.Store(r.newView())
	r.listener.row = row{}
	r.listener.hurry()
}

// listen keeps a subscription until ctx ends.
func (r *remote) listen(ctx context.Context) {
	pause := time.Duration(0)
	for ctx.Err() == nil {
		began := now()
		err := r.subscribe(ctx)
		if ctx.Err() != nil {
			err = ErrClosed
		}
		r.listener.mu.Lock()
		r.end(endLost, err)
		r.listener.mu.Unlock()
		if now()-began > int64(r.opts.window()) {
			pause = 0
		}
		wait(ctx, pause)
		pause = min(max(2*pause, r.opts.Heartbeat/32), r.opts.Heartbeat)
	}
}

// subscribe returns when the subscription is lost, or silent: never with nil.
func (r *remote) subscribe(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	late := time.AfterFunc(r.opts.Timeout, func() { cancel(errSilent) })
	defer late.Stop()
	onReady := func(ping func(context.Context) error) {
		if late.Stop() {
			wg.Go(func() { defer cancel(errSilent); r.beats(ctx, ping) })
		}
	}
	onMessage := func(_, payload string) { r.hear(payload) }
	var err error
	if channels := []string{r.channel}; r.opts.Tracking {
		err = r.shard.(Tracker).Track(ctx, channels, r.opts.Namespace+":", onReady, onMessage, r.hearChanges)
	} else {
		err = r.shard.Subscribe(ctx, channels, onReady, onMessage)
	}
	if context.Cause(ctx) == errSilent {
		return errSilent
	}
	return err
}

// hear takes a notice.
func (r *remote) hear(payload string) {
	n, ok := parseNotice(payload)
	l := &r.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	v := r.view.Load()
	epoch := v.epoch.Load()
	switch {
	case !ok:
		r.end(endBroken, errBroken)
		l.broken = true
		return
	case epoch != 0 && n.epoch != epoch && !r.off.epoch:
		r.end(endEpoch, nil)
		l.row = row{first: n.sequence, last: n.sequence, epoch: n.epoch}
		return
	case epoch != 0 && n.sequence > l.last+1 && !r.off.sequence:
		r.end(endGap, nil)
		l.row = row{first: n.sequence, last: n.sequence, epoch: n.epoch}
		return
	case epoch == 0 && l.first != 0 && (n.sequence != l.last+1 || n.epoch != l.epoch):
		l.broken = true
	case epoch == 0 && l.first == 0:
		l.first, l.epoch = n.sequence, n.epoch
	}
	l.last = max(l.last, n.sequence)
	prefix, cleared := len(r.opts.Namespace)+1, false
	for {
		key, ok := n.next()
		if !ok || len(key) < prefix {
			break
		}
		if tag, ok := strings.CutPrefix(key[prefix-1:], tagKind); ok {
			v.invalidated(tag, n.sequence)
			continue
		}
		if strings.HasPrefix(key[prefix-1:], prefixKind) {
			cleared = true
			continue
		}
		v.wrote(key[prefix:], n.sequence)
		r.set.outdated(r, key[prefix:], n.sequence)
	}
	raise(&v.heard, l.last) // after the tags
	if cleared {
		r.end(endCleared, nil)
		l.row = row{first: n.sequence, last: n.sequence, epoch: n.epoch}
	}
	if n.keys != "" {
		r.end(endBroken, errBroken)
		l.broken = true
	}
}

// hearChanges takes keys that changed, without saying by what: perhaps by a write
// that is heard of, too.
func (r *remote) hearChanges(places []string) {
	l := &r.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	if places == nil {
		r.end(endEpoch, errEmptied)
		return
	}
	v, t := r.view.Load(), now()
	for _, place := range places {
		if key, ok := strings.CutPrefix(place, r.opts.Namespace+":"); ok {
			v.changed(key, t)
			r.set.outdated(r, key, math.MaxInt64)
		}
	}
}

// beats asks the shard for its last sequence every heartbeat, until ctx ends or
// the subscription is silent.
func (r *remote) beats(ctx context.Context, ping func(context.Context) error) {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-r.listener.kick:
		}
		next := r.opts.Heartbeat
		switch err := r.beat(ctx, ping); {
		case errors.Is(err, errSilent):
			return
		case errors.Is(err, errBehind):
			next = r.opts.Heartbeat / 32
		case err != nil:
			next = r.opts.Heartbeat / 4
		}
		tick.Reset(next)
	}
}

var (
	errBroken  = errors.New("tiercache: a notice cannot be read")
	errEmptied = errors.New("tiercache: the shard was emptied")
	errSilent  = errors.New("tiercache: the subscription is silent")
	errBehind  = errors.New("tiercache: notices are missing")
	errOut     = errors.New("tiercache: the shard is out")
)

// beat learns the shard's last sequence, and then waits until every notice sent
// up to there must have been heard. Where all were, the view counts on. It goes past
// the breaker.
func (r *remote) beat(ctx context.Context, ping func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, max(r.opts.Heartbeat, r.opts.Timeout))
	defer cancel()
	reply, err := r.set.hello(ctx, r, r.send, greeting{watch: !r.out.Load()})
	switch {
	case err != nil:
		return err
	case r.out.Load():
		return errOut
	case !reply.watched && !r.off.verify:
		if err := r.set.admit(ctx, r); err != nil {
			return err
		}
		return errBehind
	}
	if err := r.set.tell(ctx, r); err != nil {
		return err
	}
	asked := now()
	if err := ping(ctx); err != nil {
		return errSilent
	}
	r.stats.lag.Store(now() - asked)
	l := &r.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	v := r.view.Load()
	switch epoch := v.epoch.Load(); {
	case epoch == 0:
		broken := l.broken || l.first > reply.sequence+1 || l.first != 0 && l.epoch != reply.epoch
		if broken {
			l.row = row{}
			return errBehind
		}
		l.last = max(l.last, reply.sequence)
		r.unbroken.Store(v.generation)
		v.base = l.last
		raise(&v.heard, l.last)
		v.epoch.Store(reply.epoch)
		l.lost = false
		r.events.tell(EventListening, r.name, "", nil)
	case epoch != reply.epoch && !r.off.epoch:
		r.end(endEpoch, nil)
		return errBehind
	case l.last < reply.sequence && !r.off.sequence:
		r.end(endGap, nil)
		return errBehind
	}
	r.trusted.Store(reply.sent + int64(r.opts.window()))
	return nil
}

func wait(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
