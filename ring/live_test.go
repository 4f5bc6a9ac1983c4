package ring

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestLiveUpdate(t *testing.T) {
	first := mustNew(t, Nodes("a", "b"), nil)
	live := NewLive(first)
	if live.Snapshot() != first || live.Locate("key") != first.Locate("key") {
		t.Error("a new Live holds another ring")
	}
	got, err := live.Update(func(r *Ring) (*Ring, error) { return r.With(Node{"c", 1}) })
	if err != nil || got.Len() != 3 || live.Snapshot() != got {
		t.Errorf("got %v, %v, want the ring with c in force", got, err)
	}
	for name, change := range map[string]func(*Ring) (*Ring, error){
		"an error":          func(r *Ring) (*Ring, error) { return r.Without("z") },
		"an error and ring": func(r *Ring) (*Ring, error) { return first, ErrUnknown },
		"nothing":           func(*Ring) (*Ring, error) { return nil, nil },
		"itself":            func(r *Ring) (*Ring, error) { return r, nil },
	} {
		now, err := live.Update(change)
		if now != got || live.Snapshot() != got {
			t.Errorf("%s changed the ring", name)
		}
		if want := name[:2] == "an"; errors.Is(err, ErrUnknown) != want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A change that panics must not leave the writers locked out.
func TestLiveUpdateThatPanics(t *testing.T) {
	live := NewLive(mustNew(t, Nodes("a"), nil))
	func() {
		defer func() { _ = recover() }()
		_, _ = live.Update(func(*Ring) (*Ring, error) { panic("no") })
	}()
	if _, err := live.Update(func(r *Ring) (*Ring, error) { return r.With(Node{"b", 1}) }); err != nil {
		t.Fatal(err)
	}
}

func TestLiveLosesNoUpdate(t *testing.T) {
	live := NewLive(mustNew(t, Nodes("first"), &Options{Placement: Table{Buckets: 1 << 14}}))
	names := numbered(20)
	var writers sync.WaitGroup
	for _, name := range names {
		writers.Go(func() {
			if _, err := live.Update(func(r *Ring) (*Ring, error) { return r.With(Node{name, 1}) }); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if got := live.Snapshot().Len(); got != 21 {
		t.Errorf("got %d nodes after 20 updates, want 21", got)
	}
}

// Readers wait for nobody: while a writer swaps the ring every millisecond a batch of lookups takes as long as before, and every
// answer is that of one ring or the other.
func TestLiveReadersAreNotHeldUp(t *testing.T) {
	a := mustNew(t, Nodes(numbered(10)...), nil)
	b := must(t)(a.WithDown("shard-1"))
	live := NewLive(a)
	keys := manyKeys(4096, 14)
	want := make([][2]string, len(keys))
	for i, key := range keys {
		want[i] = [2]string{a.Locate(key), b.Locate(key)}
	}
	var swapping atomic.Bool
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if swapping.Load() {
				_, _ = live.Update(func(*Ring) (*Ring, error) { return []*Ring{a, b}[i%2], nil })
			}
		}
	})
	defer writer.Wait()
	defer close(stop)

	read := func() time.Duration {
		start := time.Now()
		wrong := 0
		for i, key := range keys {
			if got := live.Locate(key); got != want[i][0] && got != want[i][1] {
				wrong++
			}
		}
		took := time.Since(start)
		if wrong > 0 {
			t.Fatalf("%d answers of neither ring", wrong)
		}
		return took
	}
	if raceEnabled {
		swapping.Store(true)
		for range 100 {
			read()
		}
		return
	}
	// Interleaved, so that what else the machine does meets both.
	var quiet, busy []time.Duration
	for range 100 {
		swapping.Store(false)
		for range 10 {
			quiet = append(quiet, read())
		}
		swapping.Store(true)
		for range 10 {
			busy = append(busy, read())
		}
	}
	slices.Sort(quiet)
	slices.Sort(busy)
	q, s := quiet[len(quiet)/2], busy[len(busy)/2]
	ns := func(d time.Duration) float64 { return float64(d) / float64(len(keys)) }
	t.Logf("a lookup through Live: %.1f ns, while the ring is swapped every millisecond %.1f ns", ns(q), ns(s))
	if float64(s) > 1.25*float64(q) {
		t.Errorf("with a writer lookups take %.2f times as long, want at most 1.25", float64(s)/float64(q))
	}
}
