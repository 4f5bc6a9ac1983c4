package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

const (
	readers = 6
	writers = 2

	writeShare = 0.12 // of the operations: a key rests for some heartbeats between two writes
)

// begin starts the load.
func (w *worker) begin() {
	w.wg.Go(func() { w.pauses(w.stop) })
	w.wg.Go(w.health)
	loop := func(goroutine int, rate float64, act func(*rand.Rand)) {
		r := rand.New(rand.NewPCG(w.Seed, uint64(w.Process)<<32|uint64(w.Life)<<16|uint64(goroutine)))
		w.wg.Go(func() {
			for {
				t := time.NewTimer(time.Duration(r.ExpFloat64() / rate * float64(time.Second)))
				select {
				case <-w.stop:
					t.Stop()
					return
				case <-t.C:
				}
				act(r)
			}
		})
	}
	for i := range readers {
		loop(i, w.Rate*(1-writeShare)/readers, w.read)
	}
	for i := range writers {
		until := map[int]int64{} // when this process may write a key again
		loop(readers+i, w.Rate*writeShare/writers, func(r *rand.Rand) { w.write(r, i, until) })
	}
}

// skewed draws a key to read: one that this process has just written now and then, else as
// Zipf's law says half of the time, so that some are hot.
func (w *worker) skewed(r *rand.Rand) int {
	if r.IntN(4) == 0 {
		return int(w.lately[r.IntN(len(w.lately))].Load())
	}
	if r.IntN(2) == 0 {
		return int(rand.NewZipf(r, 1.2, 1, uint64(w.Ordered-1)).Uint64())
	}
	return w.pick(r)
}

// pick draws a key, of a few most of the time.
func (w *worker) pick(r *rand.Rand) int {
	if r.IntN(10) == 0 {
		return w.Ordered + r.IntN(w.Racing)
	}
	return w.pickOrdered(r)
}

func (w *worker) pickOrdered(r *rand.Rand) int {
	if r.IntN(3) == 0 {
		return r.IntN(max(w.Ordered/10, 1))
	}
	return r.IntN(w.Ordered)
}

func (w *worker) read(r *rand.Rand) {
	key := w.skewed(r)
	switch n := r.IntN(100); {
	case n < 45:
		w.get(key, false)
	case n < 85:
		w.load(r, key)
	default:
		keys := []int{key}
		for range 4 {
			if k := w.skewed(r); k != key {
				keys = append(keys, k)
			}
		}
		w.many(r, keys, n < 93)
	}
}

func (w *worker) op(kind Kind, key int, patience time.Duration) *Op {
	now := monotonic()
	return &Op{Kind: kind, Process: w.Process, Life: w.Life, Key: key, Begin: now, Deadline: now + int64(patience)}
}

func (w *worker) end(op *Op, value string, err error) {
	if op.End == 0 {
		op.End = monotonic()
	}
	if op.End > op.Deadline {
		w.paused(op.End) // perhaps the process is killed before pauses tells
	}
	if w.outcome(op, err); op.Outcome == OK && !op.Kind.Write() {
		op.took(value)
	}
	w.emit(line{Op: op})
}

func (w *worker) get(key int, final bool) {
	op := w.op(Get, key, w.patience())
	op.Final = final
	ctx, cancel := w.context(op.Deadline)
	defer cancel()
	value, err := w.subject.Get(ctx, keyName(key))
	w.end(op, value, err)
}

func (w *worker) load(r *rand.Rand, key int) {
	delay := w.delay(r)
	op := w.op(Load, key, w.patience())
	ctx, cancel := w.context(op.Deadline)
	defer cancel()
	value, err := w.subject.Load(ctx, keyName(key), func(ctx context.Context) (string, error) {
		value := w.source(key)
		if err := rest(ctx, delay); err != nil {
			return "", err
		}
		if value == "" {
			return "", tiercache.ErrNotFound
		}
		return value, nil
	})
	w.end(op, value, err)
}

func (w *worker) many(r *rand.Rand, keys []int, alone bool) {
	kind, delay := Many, w.delay(r)
	var load func(context.Context, []string) (map[string]string, error)
	if !alone {
		kind = LoadMany
		load = func(ctx context.Context, names []string) (map[string]string, error) {
			values := map[string]string{}
			for _, name := range names {
				var key int
				if _, err := fmt.Sscanf(name, "key:%d", &key); err != nil {
					return nil, err
				}
				if value := w.source(key); value != "" {
					values[name] = value
				}
			}
			return values, rest(ctx, delay)
		}
	}
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = keyName(key)
	}
	first := w.op(kind, 0, w.patience())
	ctx, cancel := w.context(first.Deadline)
	defer cancel()
	values, failed := w.subject.Many(ctx, names, load)
	end := monotonic()
	for i, key := range keys {
		op := *first
		op.Key, op.End = key, end
		value, found := values[names[i]]
		err := failed[names[i]]
		if !found && err == nil {
			err = tiercache.ErrNotFound
		}
		w.end(&op, value, err)
	}
}

// source asks the source of truth: "" is nothing.
func (w *worker) source(key int) string {
	truth := w.truth[key].Load()
	if truth == 0 || truth&1 == 1 {
		return ""
	}
	return loaded(key, truth>>1)
}

// delay is how long a loader takes after it has read: a write may come between.
func (w *worker) delay(r *rand.Rand) time.Duration {
	if r.IntN(2) == 0 {
		return 0
	}
	part := r.Float64()
	return time.Duration(part * part * part * float64(w.Loader))
}

func rest(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isAbsent(err error) bool { return errors.Is(err, tiercache.ErrNotFound) }

// write writes a key that it is this process's turn to write, or a racing one, of
// those that belong to this goroutine.
func (w *worker) write(r *rand.Rand, goroutine int, until map[int]int64) {
	op := w.op(Set, -1, w.timeout())
	turn := op.Begin / int64(w.turns)
	for range 32 {
		key := w.pick(r)
		ours := key >= w.Ordered || (int64(key/writers)+turn)%int64(w.Processes) == int64(w.Process)
		if ours && key%writers == goroutine {
			op.Key = key
			break
		}
	}
	switch {
	case op.Key < 0 || op.Begin < until[op.Key]: // an earlier one may still take effect
		return
	case op.Key < w.Ordered && op.Deadline > (turn+1)*int64(w.turns): // it may take effect in another's turn
		return
	}
	switch n := r.IntN(10); {
	case n < 2:
		op.Kind = Invalidate
	case n < 3:
		op.Kind = Remove
	}
	life := time.Duration(0)
	if r.IntN(10) == 0 {
		life = time.Duration((0.2 + 3*r.Float64()) * float64(w.Heartbeat))
	}
	w.change(op, life)
	switch {
	case op.Outcome == Unknown:
		until[op.Key] = op.Deadline
	case op.Outcome == OK && op.Key < w.Ordered:
		w.lately[w.wrote.Add(1)%uint32(len(w.lately))].Store(uint32(op.Key))
	}
}

// change changes the source of truth, and then the cache.
func (w *worker) change(op *Op, life time.Duration) {
	truth := &w.truth[op.Key]
	old := truth.Load()
	// Of this process alone, and greater than all before.
	op.Version = (old>>1/maxProcesses+1)*maxProcesses + uint64(w.Process)
	op.Outcome = Begun
	w.emit(line{Op: op})
	next := op.Version << 1
	if op.Kind == Remove {
		next |= 1
	}
	if !truth.CompareAndSwap(old, next) {
		op.Outcome, op.End, op.Error = Refused, monotonic(), errNoTurn.Error()
		w.emit(line{Op: op})
		return
	}
	ctx, cancel := w.context(op.Deadline)
	defer cancel()
	var err error
	if op.Kind == Set {
		err = w.subject.Set(ctx, keyName(op.Key), stored(op.Key, op.Version), life)
	} else {
		err = w.subject.Delete(ctx, keyName(op.Key))
	}
	w.end(op, "", err)
}
