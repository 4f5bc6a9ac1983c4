package ring

import (
	"sync"
	"sync/atomic"
)

// Live holds the ring that is in force, while nodes come, go and fail. Readers take no lock: they load one pointer. All
// methods may be called from any number of goroutines.
type Live struct {
	ring    atomic.Pointer[Ring]
	writers sync.Mutex
}

// NewLive begins with r, which must not be nil.
func NewLive(r *Ring) *Live {
	l := new(Live)
	l.ring.Store(r)
	return l
}

// Snapshot returns the ring in force. One operation that looks at several keys, or at one key twice, takes it once: two
// snapshots may differ.
func (l *Live) Snapshot() *Ring { return l.ring.Load() }

// Locate is Snapshot().Locate(key).
func (l *Live) Locate(key string) string { return l.ring.Load().Locate(key) }

// Update puts change's answer in force, and returns what then is. Updates follow one another, so none is lost. Where change fails
// the ring stays as it was, and so it does where change returns it or nil. change must not call Update.
//
//	live.Update(func(r *ring.Ring) (*ring.Ring, error) { return r.Without("shard-3") })
func (l *Live) Update(change func(*Ring) (*Ring, error)) (*Ring, error) {
	l.writers.Lock()
	defer l.writers.Unlock()
	next, err := change(l.ring.Load())
	if err != nil {
		return l.ring.Load(), err
	}
	if next != nil {
		l.ring.Store(next)
	}
	return l.ring.Load(), nil
}
