package tier

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

// TestSeenSpeed measures how long a write takes until another cache's L1 gives
// it, from when Set is called.
func TestSeenSpeed(t *testing.T) {
	eachClient(t, func(t *testing.T, c client) {
		nodes := servers(t, 3, harness.Options{})
		a, b := open[int](t, c, nodes, nil), open[int](t, c, nodes, nil)
		synced(t, a, b)
		batches, rounds := 1, 100
		if long() {
			batches, rounds = 6, 500
		}
		best := time.Hour // of the batches: whatever else the machine does only adds
		for batch := range batches {
			took := make([]time.Duration, rounds)
			for i := range took {
				value, written := batch*rounds+i, time.Now()
				mustSet(t, a, "k", value)
				for {
					v, err := b.Get(t.Context(), "k")
					if err == nil && v == value {
						break
					}
					if time.Since(written) > bound {
						t.Fatalf("batch %d, round %d: still %v, %v after %v", batch, i, v, err, bound)
					}
					time.Sleep(20 * time.Microsecond) // or the loop keeps the server off the core, for 4 ms at a time
				}
				took[i] = time.Since(written)
			}
			slices.Sort(took)
			best = min(best, took[rounds*99/100])
			t.Logf("until b sees what a wrote: p50 %v, p99 %v, max %v", took[rounds/2], took[rounds*99/100], took[rounds-1])
		}
		if best > 5*time.Millisecond && long() && !raceEnabled {
			t.Errorf("p99: got %v, want 5 ms at most", best)
		}
	})
}

// bound is the one that DESIGN states for default options: two heartbeats.
const bound = 2 * time.Second

// late is how long a busy machine may take over what ends by a time-out of 500 ms:
// less than the clients' own, of which the shortest is 3 s.
const late = 2500 * time.Millisecond

// A disturbance keeps a process from hearing of a write.
type disturbance struct {
	name  string
	begin func(t *testing.T, n *harness.Node)
	end   func(t *testing.T, n *harness.Node)
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mend(t *testing.T, n *harness.Node) { t.Helper(); ok(t, n.Mend()) }

var disturbances = []disturbance{
	{"subscription killed", func(t *testing.T, n *harness.Node) {
		_, err := n.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub")
		ok(t, err)
	}, func(*testing.T, *harness.Node) {}},
	{"notices swallowed", func(t *testing.T, n *harness.Node) {
		ok(t, n.Swallow(func(m []byte) bool {
			return bytes.Contains(m, []byte("#notices\r\n")) && bytes.Contains(m, []byte("message\r\n"))
		}))
	}, mend},
	{"cut and healed", func(t *testing.T, n *harness.Node) { ok(t, n.Cut()) }, mend},
	{"stalled and resumed", func(t *testing.T, n *harness.Node) { ok(t, n.Stall()) }, mend},
}

// TestNoOldValueAfterTheBound: whatever happens to b's connection while a
// writes, b does not give the old value when the bound is over. a's way to the
// server is not b's.
func TestNoOldValueAfterTheBound(t *testing.T) {
	last := lasts(t, time.Minute) / 2 // of each of the two
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		for _, d := range disturbances {
			t.Run(d.name, func(t *testing.T) {
				t.Parallel()
				t.Run("defaults", func(t *testing.T) { disturb(t, c, d, 1, last, nil, bound) })
				t.Run("20 ms", func(t *testing.T) {
					opts := &tiercache.Options{Heartbeat: 20 * time.Millisecond}
					disturb(t, c, d, 15, last, opts, 2*opts.Heartbeat)
				})
			})
		}
	})
}

// disturb does so for some rounds, and goes on as long as it is to last.
func disturb(t *testing.T, c client, d disturbance, least int, last time.Duration, opts *tiercache.Options, bound time.Duration) {
	n := servers(t, 1, harness.Options{Proxied: true})[0]
	port, err := n.Do(t.Context(), "CONFIG", "GET", "port")
	ok(t, err)
	direct := "127.0.0.1:" + port.([]any)[1].(string)
	newCache := func(addr string) *tiercache.Cache[int] {
		cache, err := tiercache.New[int](map[string]tiercache.Shard{"s": c.shard(t, addr)}, opts)
		ok(t, err)
		t.Cleanup(func() { cache.Close() })
		return cache
	}
	a, b := newCache(direct), newCache(n.Addr())
	// In so many rounds a loaded machine may be late with one.
	write := func(v int) {
		t.Helper()
		within(t, time.Minute, "a writes", func() bool { return a.Set(t.Context(), "k", v) == nil })
	}
	old, unanswered, held := 0, 0, 0
	i := 0
	for began := time.Now(); i < least || time.Since(began) < last; i++ {
		synced(t, b)
		write(2 * i)
		within(t, time.Minute, "b reads what a wrote", func() bool { v, err := b.Get(t.Context(), "k"); return err == nil && v == 2*i })
		before := b.Stats().LocalHits
		b.Get(t.Context(), "k")
		if b.Stats().LocalHits > before {
			held++
		}
		d.begin(t, n)
		write(2*i + 1)
		written := time.Now()
		// Healed half-way, so that what was held up has its chance to do harm.
		for healed := false; ; {
			b.Get(t.Context(), "k") // what it finds it may keep
			since := time.Since(written)
			if !healed && since > bound/2 {
				d.end(t, n)
				healed = true
			}
			if since > bound {
				break
			}
			time.Sleep(bound / 40)
		}
		asked := time.Now()
		v, err := b.Get(t.Context(), "k")
		switch {
		case err == nil && v == 2*i:
			old++
			t.Errorf("round %d: the old value %v after the write", i, asked.Sub(written))
		case err == nil && v != 2*i+1:
			t.Errorf("round %d: got %d, which is neither %d nor %d", i, v, 2*i, 2*i+1)
		case err != nil:
			unanswered++
		}
	}
	if held == 0 {
		t.Error("b never held a value in L1: the test shows nothing")
	}
	t.Logf("%d rounds, %d with the value in b's L1: %d old values, %d reads without an answer", i, held, old, unanswered)
}

// TestLateSet: a Set that a frozen shard did not answer in time does nothing when
// the shard thaws.
func TestLateSet(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		n := servers(t, 1, harness.Options{})[0]
		a, b := open[int](t, c, []*harness.Node{n}, nil), open[int](t, c, []*harness.Node{n}, nil)
		synced(t, a, b)
		for i := range 3 {
			mustSet(t, a, "k", 1)
			wantGet(t, b, "k", 1)
			ok(t, n.Freeze())
			start := time.Now()
			err := a.Set(t.Context(), "k", 2)
			if took := time.Since(start); err == nil || took > late {
				t.Errorf("Set at a frozen shard: got %v after %v, want an error after 500 ms", err, took)
			}
			ok(t, n.Thaw())
			within(t, time.Minute, "the shard answers", func() bool { _, err := b.Get(t.Context(), "other"); return errors.Is(err, tiercache.ErrNotFound) })
			// What was sent to the server while it was frozen lies before this in its sockets, or close to.
			for range 20 {
				if v, err := b.Get(t.Context(), "k"); err == nil && v == 2 {
					t.Fatalf("round %d: the late Set took effect", i)
				}
				time.Sleep(5 * time.Millisecond)
			}
			within(t, time.Minute, "a's breaker lets writes pass", func() bool { return a.Set(t.Context(), "k", 3) == nil })
		}
	})
}

// TestLoadsLive: a load is not stored if its key was written, deleted or evicted
// meanwhile.
func TestLoadsLive(t *testing.T) {
	eachClient(t, func(t *testing.T, c client) {
		nodes := servers(t, 1, harness.Options{})
		a, b := open[int](t, c, nodes, nil), open[int](t, c, nodes, nil)
		synced(t, a, b)
		for name, meanwhile := range map[string]func() error{
			"delete":   func() error { return b.Delete(t.Context(), "k") },
			"set":      func() error { return b.Set(t.Context(), "k", 2, tiercache.TTL(20*time.Millisecond)) },
			"eviction": func() error { _, err := nodes[0].Do(t.Context(), "DEL", "tc:k"); return err },
			"flush":    func() error { _, err := nodes[0].Do(t.Context(), "FLUSHALL"); return err },
		} {
			began, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
			go func() {
				v, err := a.GetOrLoad(context.Background(), "k", func(context.Context) (int, error) {
					close(began)
					<-goOn
					return 1, nil
				})
				if err == nil && v != 1 {
					err = errors.New("not the loaded value")
				}
				done <- err
			}()
			<-began
			ok(t, meanwhile())
			within(t, time.Minute, "the short life is over", func() bool { _, err := b.Get(t.Context(), "k"); return errors.Is(err, tiercache.ErrNotFound) })
			close(goOn)
			ok(t, <-done)
			for _, c := range []*tiercache.Cache[int]{a, b} {
				if v, err := c.Get(t.Context(), "k"); err == nil {
					t.Errorf("%s: the old load is there: %d", name, v)
				}
			}
			if s := a.Stats(); s.RefusedFills == 0 {
				t.Errorf("%s: no fill was refused: %+v", name, s)
			}
		}
		// Undisturbed, it is stored, and read by the other.
		v, err := a.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { return 5, nil })
		if err != nil || v != 5 {
			t.Fatalf("got %v, %v", v, err)
		}
		wantGet(t, b, "k", 5)
	})
}

// TestPressure: a server that is full drops what it likes, is flushed and comes
// back with an old snapshot. No old value is read, ever: a value is its version, and
// every read is of the last acknowledged one or later.
func TestPressure(t *testing.T) {
	t.Parallel()
	for i, policy := range []string{"allkeys-lru", "allkeys-random", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			if !long() {
				pressure(t, clients[i%len(clients)], policy)
				return
			}
			eachClient(t, func(t *testing.T, c client) { t.Parallel(); pressure(t, c, policy) })
		})
	}
}

func pressure(t *testing.T, c client, policy string) {
	memory, keys := "9mb", 451 // 20 kB each; no multiple of 3, see rounds
	if long() {
		memory, keys = "20mb", 1300
	}
	n := servers(t, 1, harness.Options{Args: []string{"--maxmemory", memory, "--maxmemory-policy", policy}})[0]
	nodes := []*harness.Node{n}
	// One process with L1, and one that sees L2 alone.
	a, b := open[string](t, c, nodes, nil), open[string](t, c, nodes, &tiercache.Options{LocalBytes: -1})
	synced(t, a)
	pad := strings.Repeat("x", 20_000)
	version := make([]byte, keys) // of the last write that was acknowledged; 255 for one of unknown outcome
	value := func(i int) string { return string(version[i]) + pad }
	var mu sync.Mutex
	stale, hits, misses, failed := 0, 0, 0, 0
	write := func(i int) {
		mu.Lock()
		defer mu.Unlock()
		version[i] = (version[i] + 1) % 200
		if err := a.Set(t.Context(), key(i), value(i)); err != nil {
			failed++
			version[i] = 255
		}
	}
	check := func(i int, c *tiercache.Cache[string]) {
		mu.Lock()
		defer mu.Unlock()
		v, err := c.Get(t.Context(), key(i))
		switch {
		case errors.Is(err, tiercache.ErrNotFound):
			misses++
		case err != nil:
			failed++
		case version[i] != 255 && v != value(i):
			stale++
		default:
			hits++
		}
	}
	rounds := func(n int) {
		for r := range n {
			for i := r % 3; i < keys; i += 3 {
				write(i)
				check((i*7+1)%keys, a)
				check((i*11+2)%keys, b)
			}
		}
	}
	rounds(3)
	_, err := n.Do(t.Context(), "FLUSHALL")
	ok(t, err)
	// L1 of a may give what it holds for the bound, which is the last value: nobody else wrote.
	rounds(1)
	ok(t, n.Save(t.Context()))
	saved := time.Now()
	rounds(1)
	if d := bound - time.Since(saved); d > 0 {
		time.Sleep(d) // an old snapshot is one that is older than the bound
	}
	ok(t, n.Kill())
	ok(t, n.Restart(t.Context(), harness.WithData))
	rounds(2)
	t.Logf("%d hits, %d misses, %d failed, epochs begun %d: %d old values", hits, misses, failed, a.Stats().Shards[0].Epochs, stale)
	if stale > 0 {
		t.Errorf("%d old values", stale)
	}
	if hits == 0 || misses == 0 {
		t.Errorf("%d hits, %d misses: the test shows nothing", hits, misses)
	}
}

func key(i int) string { return "key:" + string(rune('a'+i%26)) + ":" + string(rune(0x4e00+i)) }
