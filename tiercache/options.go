package tiercache

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/tiercache/internal/hot"
)

// Options of a Cache. The zero value, and a nil pointer, are usable.
type Options struct {
	// Namespace is the beginning of every key and channel. Caches of one
	// namespace on the same shards are one cache, whatever the process; they must
	// agree on V and Ring. It holds no colon, # or space. "" means "tc".
	Namespace string

	// TTL is the life of a value. 0 means 5 minutes.
	TTL time.Duration

	// NegativeTTL is for how long it is remembered that a loader returned
	// ErrNotFound. 0 means 10 s; a negative number, not at all.
	NegativeTTL time.Duration

	// Jitter shortens TTL and NegativeTTL by up to this part, at random, so that
	// what was stored together does not expire together. A life that is given
	// with a call is kept exactly. 0 means 0.1, a negative number none.
	Jitter float64

	// LocalBytes bounds what this process holds (L1): keys, values, and some 150
	// bytes for each. 0 means 64 MiB, a negative number no L1 at all.
	LocalBytes int64

	// LocalEntries bounds L1 by the number of its entries instead.
	LocalEntries int

	// LocalTTL bounds a value's life in L1, where it never outlives the one on its
	// shard. 0 means no other bound.
	LocalTTL time.Duration

	// Shared lets callers have the values that L1 holds, and not copies: a hit then
	// costs no copy and no decoding, and no caller may change what it got. It
	// makes no difference where V holds no pointers besides strings.
	Shared bool

	// Codec turns values into bytes. nil means Raw where V is string or []byte,
	// and JSON elsewhere.
	Codec Codec

	// Codecs are others whose values this cache reads, while processes that write
	// them share its shards. Raw, for strings and byte slices, and JSON always are.
	Codecs []Codec

	// Ring places keys on shards. nil means ring.Table{}.
	Ring ring.Placement

	// HotReads makes a key hot that this process reads so often from its shard
	// within 5 s: see HotKeys. 0 means 100, a negative number that no key is; at most 262143.
	HotReads int

	// Handover is for how long after AddShard and RemoveShard a key that has moved is
	// asked of the shard that had it, where the new one has no value. Each write of such a key
	// costs a second one meanwhile, and 12 s longer. 0 means 1 minute, a negative number not at all.
	Handover time.Duration

	// Heartbeat is how often a shard is asked what its last write was. It states
	// the bound of staleness: a value in L1 counts for two heartbeats from when the
	// shard was last asked with success. 0 means 1 s; at least 5 ms.
	Heartbeat time.Duration

	// Timeout bounds one operation on a shard, if the caller's context does not end
	// before. A write takes no effect after it. 0 means 500 ms.
	Timeout time.Duration

	// FailoverTTL bounds the life of values that a shard holds in the place of another
	// one, which is out. It states the bound of staleness for a process that does not reach
	// a shard which others use: what they write there it sees after this time at the latest.
	// 0 means 10 s.
	FailoverTTL time.Duration

	// LoadTimeout bounds a load: its context ends then, callers stop waiting, and
	// its value is not stored any more. 0 means 30 s.
	LoadTimeout time.Duration

	// FleetWait is for how long a process that misses a value waits for another that
	// already loads it. Then it takes over: of all that wait, one does. So it should be
	// longer than loads usually take; at most half of LoadTimeout. 0 means that each
	// process loads for itself.
	FleetWait time.Duration

	// RefreshAhead is how long before the end of its life a value that is asked for in
	// L1 is loaded anew, by one process, while it is given all the same. The moment is
	// drawn from between there and half of it. At most half of TTL; lives that are given
	// with a call are halved at most. 0 means never.
	RefreshAhead time.Duration

	// StaleFor is for how long past its life a value may be given where a load fails,
	// or takes longer than SoftTimeout. L1 must still hold it: for that it is the only
	// place. A value that was overwritten or deleted is not given, within the bound of
	// staleness as always; only while its shard does not answer may it be as old as its
	// life and StaleFor. A load that failed is then not tried again for a heartbeat. 0
	// means never.
	StaleFor time.Duration

	// SoftTimeout is how long a caller waits for a load, if there is a value that
	// StaleFor lets it have: the load goes on, for those who come later. 0 means
	// LoadTimeout.
	SoftTimeout time.Duration

	// Tracking makes L1 hear also of what others than caches do to a shard's keys
	// under Namespace: commands of other programs, expiry, eviction. Every shard
	// must be a Tracker. Each change of a key then costs this process one more read
	// of it, its own changes too, and the server one more message a process; reads cost it
	// nothing, and it keeps nothing for a key (figures are in docs/decisions/0007).
	Tracking bool

	// OnEvent is told what an operator may have to know, such as LogEvents(logger).
	// It is called by one goroutine of the cache, with no lock held, and holds up
	// nothing but later events. It may not call Close.
	OnEvent func(Event)
}

const (
	defaultNamespace   = "tc"
	defaultTTL         = 5 * time.Minute
	defaultNegativeTTL = 10 * time.Second
	defaultJitter      = 0.1
	defaultLocalBytes  = 64 << 20
	defaultHeartbeat   = time.Second
	defaultHotReads    = 100
	defaultHandover    = time.Minute
	defaultTimeout     = 500 * time.Millisecond
	defaultLoadTimeout = 30 * time.Second
	defaultFailoverTTL = 10 * time.Second

	minHeartbeat = 5 * time.Millisecond
	// maxTTL is the longest life, to which longer ones are cut: times in the
	// shard's milliseconds stay far from the limits of both sides.
	maxTTL = 100 * 365 * 24 * time.Hour
)

func (o *Options) withDefaults() (Options, error) {
	var opts Options
	if o != nil {
		opts = *o
	}
	set(&opts.Namespace, defaultNamespace)
	set(&opts.TTL, defaultTTL)
	set(&opts.NegativeTTL, defaultNegativeTTL)
	set(&opts.Jitter, defaultJitter)
	set(&opts.Heartbeat, defaultHeartbeat)
	set(&opts.HotReads, defaultHotReads)
	set(&opts.Handover, defaultHandover)
	set(&opts.Timeout, defaultTimeout)
	set(&opts.LoadTimeout, defaultLoadTimeout)
	set(&opts.FailoverTTL, defaultFailoverTTL)
	if opts.LocalEntries != 0 && opts.LocalBytes > 0 {
		return opts, errors.New("tiercache: LocalBytes and LocalEntries both bound L1: give one")
	}
	if opts.LocalEntries == 0 {
		set(&opts.LocalBytes, defaultLocalBytes)
	}
	switch {
	case strings.ContainsAny(opts.Namespace, ":# \r\n\t"):
		return opts, fmt.Errorf("tiercache: namespace %q: it may not hold a colon, # or space", opts.Namespace)
	case opts.LocalEntries < 0:
		return opts, errors.New("tiercache: LocalEntries is below zero: LocalBytes -1 turns L1 off")
	case opts.LocalEntries > 0 && opts.LocalBytes < 0:
		return opts, errors.New("tiercache: LocalEntries with L1 off")
	case opts.Tracking && opts.LocalBytes < 0:
		return opts, errors.New("tiercache: Tracking with L1 off: it is for L1 alone")
	case opts.TTL < 0:
		return opts, fmt.Errorf("tiercache: TTL %v is below zero", opts.TTL)
	case opts.LocalTTL < 0:
		return opts, fmt.Errorf("tiercache: LocalTTL %v is below zero: LocalBytes -1 turns L1 off", opts.LocalTTL)
	case math.IsNaN(opts.Jitter) || opts.Jitter > 1:
		return opts, fmt.Errorf("tiercache: Jitter %v: at most 1", opts.Jitter)
	case opts.Heartbeat < minHeartbeat:
		return opts, fmt.Errorf("tiercache: Heartbeat %v: at least %v", opts.Heartbeat, minHeartbeat)
	case opts.HotReads > hot.MaxReads:
		return opts, fmt.Errorf("tiercache: HotReads %d: at most %d", opts.HotReads, hot.MaxReads)
	case opts.FailoverTTL < 0:
		return opts, fmt.Errorf("tiercache: FailoverTTL %v is below zero", opts.FailoverTTL)
	case opts.FleetWait < 0 || opts.FleetWait > opts.LoadTimeout/2:
		return opts, fmt.Errorf("tiercache: FleetWait %v: from 0 to half of LoadTimeout, %v", opts.FleetWait, opts.LoadTimeout/2)
	case opts.RefreshAhead < 0 || opts.RefreshAhead > opts.TTL/2:
		return opts, fmt.Errorf("tiercache: RefreshAhead %v: from 0 to half of TTL, %v", opts.RefreshAhead, opts.TTL/2)
	case opts.RefreshAhead > 0 && opts.LocalEntries == 0 && opts.LocalBytes < 0:
		return opts, errors.New("tiercache: RefreshAhead with L1 off: only what L1 holds is refreshed")
	case opts.StaleFor < 0:
		return opts, fmt.Errorf("tiercache: StaleFor %v is below zero", opts.StaleFor)
	case opts.StaleFor > 0 && opts.LocalEntries == 0 && opts.LocalBytes < 0:
		return opts, errors.New("tiercache: StaleFor with L1 off: nothing else keeps a value past its life")
	case opts.SoftTimeout > 0 && opts.StaleFor == 0:
		return opts, errors.New("tiercache: SoftTimeout without StaleFor: there is nothing to give before the load ends")
	case opts.SoftTimeout >= opts.LoadTimeout:
		return opts, fmt.Errorf("tiercache: SoftTimeout %v: it must be below LoadTimeout, %v", opts.SoftTimeout, opts.LoadTimeout)
	case opts.Timeout < 0 || opts.LoadTimeout < 0 || opts.SoftTimeout < 0:
		return opts, errors.New("tiercache: a time-out below zero")
	}
	return opts, nil
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// window is for how long an answer of a shard about itself counts.
func (o *Options) window() time.Duration { return 2 * o.Heartbeat }

// jittered shortens a life as Options.Jitter says.
func (o *Options) jittered(d time.Duration) time.Duration {
	if o.Jitter <= 0 {
		return d
	}
	return d - time.Duration(rand.Float64()*o.Jitter*float64(d))
}

// CallOption changes one call.
type CallOption struct {
	ttl    time.Duration
	tags   []string
	tagsOf any // func(V) []string
}

// TTL gives the life of the values that the call stores, exactly, to the
// millisecond (a part of one counts as a whole). Zero or less is ErrTTL.
func TTL(d time.Duration) CallOption {
	if d <= 0 {
		d = -1
	}
	return CallOption{ttl: d}
}

// life is the life that a call's values are to have: whole milliseconds, above zero.
func (o *Options) life(opts []CallOption) (time.Duration, error) {
	var d time.Duration
	for _, opt := range opts {
		if opt.ttl < 0 {
			return 0, ErrTTL
		}
		set(&opt.ttl, d)
		d = opt.ttl
	}
	if d == 0 {
		d = o.jittered(o.TTL)
	}
	return milliseconds(d), nil
}

// milliseconds rounds a life up to whole milliseconds, and cuts it to maxTTL.
func milliseconds(d time.Duration) time.Duration {
	d = min(max(d, time.Millisecond), maxTTL)
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
