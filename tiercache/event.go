package tiercache

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// An Event is something that whoever operates a cache may have to know.
type Event struct {
	Kind  EventKind
	Time  time.Time // of the last, where Count is above 1
	Shard string    // its name
	Key   string    // of EventFillRefused and EventCorrupt
	Err   error     // the reason, where there is one beside the kind

	// Count is 1, or more if events of the kind and the shard came faster than
	// they were told: they are told as one.
	Count uint64
}

// EventKind is what happened.
type EventKind int

// The kinds of events. Those of one key are told once a second and shard at most.
const (
	EventListening   EventKind = iota + 1 // notices arrive: this process holds the shard's values in L1 from now on
	EventLost                             // the subscription was lost, silent, or refused; what L1 held of the shard ceased to count
	EventGap                              // a notice did not arrive; the same
	EventEpoch                            // the shard lost its data, or came back with other data; the same
	EventBreakerOpen                      // the shard failed so often that it is not asked for now
	EventBreakerShut                      // it is asked again
	EventShardOut                         // the shard fails: others stand in for it
	EventShardBack                        // it serves again
	EventMembers                          // the list of shards changed
	EventDiffer                           // another process was given other shards than this one, or another ring
	EventFillRefused                      // a loaded value was not stored: its key was written meanwhile
	EventCorrupt                          // a value on the shard was no envelope, or did not decode: a miss
)

var eventKinds = [...]struct {
	name   string
	level  slog.Level
	ofKeys bool
}{
	EventListening:   {"listening to the shard", slog.LevelInfo, false},
	EventLost:        {"the shard's subscription was lost", slog.LevelWarn, false},
	EventGap:         {"a notice of the shard did not arrive", slog.LevelWarn, false},
	EventEpoch:       {"the shard's data is other data", slog.LevelWarn, false},
	EventBreakerOpen: {"the shard failed too often and is not asked for now", slog.LevelWarn, false},
	EventBreakerShut: {"the shard is asked again", slog.LevelInfo, false},
	EventShardOut:    {"the shard is out", slog.LevelWarn, false},
	EventShardBack:   {"the shard is back", slog.LevelInfo, false},
	EventMembers:     {"the list of shards changed", slog.LevelInfo, false},
	EventDiffer:      {"another process was given other shards", slog.LevelWarn, false},
	EventFillRefused: {"a loaded value was not stored", slog.LevelDebug, true},
	EventCorrupt:     {"a value could not be read", slog.LevelWarn, true},
}

func (k EventKind) String() string {
	if k < 1 || int(k) >= len(eventKinds) {
		return "unknown"
	}
	return eventKinds[k].name
}

// Level is how much an event of the kind matters in a log.
func (k EventKind) Level() slog.Level {
	if k < 1 || int(k) >= len(eventKinds) {
		return slog.LevelInfo
	}
	return eventKinds[k].level
}

// LogEvents returns a function for Options.OnEvent that writes each event to l:
// what happened as the message, the rest as attributes (shard, key, count, err).
func LogEvents(l *slog.Logger) func(Event) {
	return func(e Event) {
		attrs := make([]slog.Attr, 0, 4)
		attrs = append(attrs, slog.String("shard", e.Shard))
		if e.Key != "" {
			attrs = append(attrs, slog.String("key", e.Key))
		}
		if e.Count > 1 {
			attrs = append(attrs, slog.Uint64("count", e.Count))
		}
		if e.Err != nil {
			attrs = append(attrs, slog.Any("err", e.Err))
		}
		l.LogAttrs(context.Background(), e.Kind.Level(), "tiercache: "+e.Kind.String(), attrs...)
	}
}

// events tell what happens to Options.OnEvent, in a goroutine of their own. A nil
// pointer tells nobody.
type events struct {
	on   func(Event)
	wake chan struct{} // one place: something is new

	mu      sync.Mutex
	waiting []Event           // one of a kind and shard at most
	told    map[subject]int64 // when the last one was, of keys, ns
}

type subject struct {
	kind  EventKind
	shard string
}

func newEvents(on func(Event)) *events {
	if on == nil {
		return nil
	}
	return &events{on: on, wake: make(chan struct{}, 1), told: map[subject]int64{}}
}

// tell never waits, and may be called with any lock held.
func (s *events) tell(kind EventKind, shard, key string, err error) {
	if s == nil {
		return
	}
	e := Event{Kind: kind, Time: time.Now(), Shard: shard, Key: key, Err: err, Count: 1}
	s.mu.Lock()
	for i, w := range s.waiting {
		if w.Kind == kind && w.Shard == shard {
			e.Count += w.Count
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...) // the last of each kind keeps its order
			break
		}
	}
	s.waiting = append(s.waiting, e)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// pauseOfKeys is the time between events of one key's kind and shard.
const pauseOfKeys = time.Second

// next takes the first event that is due. Without one, wait is until when there
// may be: 0 for nothing to wait for.
func (s *events) next(all bool) (e Event, wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range s.waiting {
		if eventKinds[e.Kind].ofKeys {
			sub, t := subject{e.Kind, e.Shard}, now()
			last, toldBefore := s.told[sub]
			if left := time.Duration(last-t) + pauseOfKeys; toldBefore && left > 0 && !all {
				if wait == 0 || left < wait {
					wait = left
				}
				continue
			}
			s.told[sub] = t
		}
		s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
		return e, 0, true
	}
	return Event{}, wait, false
}

// run tells events until ctx ends, and then those that are left.
func (s *events) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		over := ctx.Err() != nil
		e, wait, ok := s.next(over)
		switch {
		case ok:
			s.on(e)
			continue
		case over:
			return
		case wait > 0:
			timer.Reset(wait)
		}
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}
