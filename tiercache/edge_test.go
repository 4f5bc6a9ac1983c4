package tiercache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

func TestNewRefuses(t *testing.T) {
	shard := memory.New(nil)
	for name, opts := range map[string]tiercache.Options{
		"a colon in the namespace":        {Namespace: "a:b"},
		"a # in the namespace":            {Namespace: "a#b"},
		"two bounds of L1":                {LocalBytes: 1, LocalEntries: 1},
		"a bound of L1 that is off":       {LocalBytes: -1, LocalEntries: 1},
		"negative entries":                {LocalEntries: -1},
		"negative TTL":                    {TTL: -1},
		"negative LocalTTL":               {LocalTTL: -1},
		"negative timeout":                {Timeout: -1},
		"more reads than are counted":     {HotReads: 1 << 20},
		"a heartbeat too short":           {Heartbeat: time.Microsecond},
		"more jitter than life":           {Jitter: 1.5},
		"a codec that cannot take an int": {Codec: tiercache.Raw},
		"negative StaleFor":               {StaleFor: -1},
		"StaleFor without L1":             {StaleFor: 1, LocalBytes: -1},
		"SoftTimeout without StaleFor":    {SoftTimeout: 1},
		"negative SoftTimeout":            {StaleFor: 1, SoftTimeout: -1},
		"SoftTimeout above the hard one":  {StaleFor: 1, SoftTimeout: time.Second, LoadTimeout: time.Second},
		"negative FleetWait":              {FleetWait: -1},
		"FleetWait that leaves no time":   {FleetWait: time.Second, LoadTimeout: time.Second},
		"negative RefreshAhead":           {RefreshAhead: -1},
		"RefreshAhead above half of TTL":  {RefreshAhead: 31 * time.Second, TTL: time.Minute},
		"RefreshAhead without L1":         {RefreshAhead: 1, LocalBytes: -1},
		"a bad placement":                 {Ring: ring.Classic{VirtualNodes: -1}},
	} {
		if c, err := tiercache.New[int](one(shard), &opts); err == nil {
			c.Close()
			t.Errorf("%s: got no error", name)
		} else if !strings.HasPrefix(err.Error(), "tiercache: ") {
			t.Errorf("%s: got %q, want it to begin with the package", name, err)
		}
	}
	if _, err := tiercache.New[int](nil, nil); err == nil {
		t.Error("no shards: got no error")
	}
	if _, err := tiercache.New[int](one(nil), nil); err == nil {
		t.Error("a nil shard: got no error")
	}
}

// TestLives: a life is kept to the millisecond, in L1 as on the shard.
func TestLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[int](t, one(shard), nil), open[int](t, one(shard), nil)
		synced(t, a, b)
		for _, life := range []time.Duration{time.Nanosecond, time.Millisecond, 1500 * time.Microsecond, 100 * time.Millisecond, 999 * time.Millisecond, 10 * time.Minute} {
			mustSet(t, a, "k", 1, tiercache.TTL(life))
			whole := (life + time.Millisecond - 1).Truncate(time.Millisecond)
			time.Sleep(whole - time.Millisecond)
			synctest.Wait()
			wantGet(t, a, "k", 1)
			wantGet(t, b, "k", 1)
			time.Sleep(time.Millisecond)
			wantNone(t, a, "k")
			wantNone(t, b, "k")
		}
		for _, life := range []time.Duration{0, -time.Second} {
			if err := a.Set(t.Context(), "k", 1, tiercache.TTL(life)); !errors.Is(err, tiercache.ErrTTL) {
				t.Errorf("TTL(%v): got %v, want ErrTTL", life, err)
			}
		}
		mustSet(t, a, "k", 1, tiercache.TTL(1<<63-1))
		time.Sleep(10 * time.Minute)
		wantGet(t, a, "k", 1)
		wantGet(t, b, "k", 1)
	})
}

// TestLocalNeverOutlives: L1 takes the rest of the life that the shard says.
func TestLocalNeverOutlives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		network := &faulty{Shard: shard, delay: upTo(1, 20*time.Millisecond)}
		a, b := open[int](t, one(shard), nil), open[int](t, one(network), nil)
		synced(t, a, b)
		for range 200 {
			mustSet(t, a, "k", 1, tiercache.TTL(200*time.Millisecond))
			end := time.Now().Add(200 * time.Millisecond)
			for range 20 {
				v, err := b.Get(t.Context(), "k")
				if now := time.Now(); err == nil && v == 1 && b.Stats().LocalHits > 0 && now.After(end.Add(20*time.Millisecond)) {
					t.Fatalf("read %v after its end", now.Sub(end))
				}
				time.Sleep(15 * time.Millisecond)
			}
		}
		if b.Stats().LocalHits == 0 {
			t.Error("nothing was read from L1: the test shows nothing")
		}
	})
}

func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		c := open[int](t, one(shard), &tiercache.Options{TTL: time.Minute, Jitter: 0.5})
		const keys = 200
		for i := range keys {
			mustSet(t, c, fmt.Sprint(i), i)
		}
		there := func() (n int) {
			for i := range keys {
				if reads(t, c, fmt.Sprint(i), i) {
					n++
				}
			}
			return n
		}
		time.Sleep(30*time.Second - time.Millisecond)
		if n := there(); n != keys {
			t.Errorf("before half of the life: got %d of %d", n, keys)
		}
		time.Sleep(15 * time.Second)
		// Each is there with probability 1/2; all or none of 200 never happens.
		if n := there(); n == 0 || n == keys {
			t.Errorf("half-way through the jitter: got %d of %d", n, keys)
		}
		time.Sleep(16 * time.Second)
		if n := there(); n != 0 {
			t.Errorf("after the life: got %d of %d", n, keys)
		}
	})
}

func TestNotFoundIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		loads := 0
		nothing := func(context.Context) (int, error) { loads++; return 0, fmt.Errorf("row: %w", tiercache.ErrNotFound) }
		c := open[int](t, one(shard), &tiercache.Options{Jitter: -1})
		d := open[int](t, one(shard), &tiercache.Options{NegativeTTL: -1, Namespace: "d"})
		synced(t, c, d)
		ask := func(c *tiercache.Cache[int]) {
			t.Helper()
			if _, err := c.GetOrLoad(t.Context(), "k", nothing); !errors.Is(err, tiercache.ErrNotFound) {
				t.Fatalf("got %v, want ErrNotFound", err)
			}
		}
		ask(c)
		ask(c)
		time.Sleep(9 * time.Second)
		ask(c)
		if loads != 1 {
			t.Errorf("within the negative TTL: got %d loads, want 1", loads)
		}
		time.Sleep(2 * time.Second)
		ask(c)
		if loads != 2 {
			t.Errorf("after it: got %d loads, want 2", loads)
		}
		mustSet(t, c, "k", 5)
		wantGet(t, c, "k", 5)
		loads = 0
		ask(d)
		ask(d)
		if loads != 2 {
			t.Errorf("without a negative TTL: got %d loads, want 2", loads)
		}
	})
}

func TestNullIsAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[any](t, one(shard), nil), open[any](t, one(shard), nil)
		synced(t, a, b)
		mustSet[any](t, a, "k", nil)
		for _, c := range []*tiercache.Cache[any]{a, b, b} {
			if v, err := c.Get(t.Context(), "k"); v != nil || err != nil {
				t.Errorf("got %v, %v, want nil, nil", v, err)
			}
		}
	})
}

func TestSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[[]byte](t, one(shard), nil), open[[]byte](t, one(shard), nil)
		synced(t, a, b)
		for _, size := range []int{0, 1, 100, 10 << 20} {
			value := bytes.Repeat([]byte{0xff}, size)
			mustSet(t, a, "k", value)
			synctest.Wait()
			for _, c := range []*tiercache.Cache[[]byte]{a, b, b} {
				got, err := c.Get(t.Context(), "k")
				if err != nil || !bytes.Equal(got, value) {
					t.Errorf("%d bytes: got %d, %v", size, len(got), err)
				}
			}
		}
		for _, key := range []string{"", ":", "a b\r\n", "\xff\x00", "12:34", strings.Repeat("x", 1000)} {
			mustSet(t, a, key, []byte(key))
			if got, err := b.Get(t.Context(), key); err != nil || string(got) != key {
				t.Errorf("key %q: got %q, %v", key, got, err)
			}
			mustSet(t, a, key, []byte("2"))
			synctest.Wait()
			if got, err := b.Get(t.Context(), key); err != nil || string(got) != "2" {
				t.Errorf("key %q, after a notice: got %q, %v", key, got, err)
			}
		}
	})
}

// TestMutation: what a caller does to a value does not reach the cache, nor
// another caller.
func TestMutation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		c := open[[]byte](t, one(shard), nil)
		d := open[any](t, one(shard), &tiercache.Options{Namespace: "d"})
		synced(t, c)
		synced(t, d)
		isA := func(v any) bool { return reflect.DeepEqual(v, []any{"a"}) }
		mine := []byte("abc")
		mustSet(t, c, "k", mine)
		mine[0] = 'X'
		for range 3 {
			got, err := c.Get(t.Context(), "k")
			if err != nil || string(got) != "abc" {
				t.Fatalf("got %q, %v, want abc", got, err)
			}
			got[0] = 'Y'
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				r, err := d.GetOrLoad(t.Context(), "k", func(context.Context) (any, error) {
					time.Sleep(time.Second)
					return []any{"a"}, nil
				})
				if !isA(r) || err != nil {
					t.Errorf("got %v, %v, want [a]", r, err)
					return
				}
				r.([]any)[0] = "b"
			})
		}
		wg.Wait()
		if s := d.Stats(); s.Loads != 1 {
			t.Errorf("got %d loads, want 1", s.Loads)
		}
		for range 2 {
			r, err := d.Get(t.Context(), "k")
			if !isA(r) || err != nil {
				t.Fatalf("got %v, %v, want [a]", r, err)
			}
			r.([]any)[0] = "c"
		}
	})
}

func TestNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		a, b := open[string](t, one(shard), &tiercache.Options{Namespace: "a"}), open[string](t, one(shard), &tiercache.Options{Namespace: "b"})
		synced(t, a, b)
		mustSet(t, a, "k", "of a")
		wantNone(t, b, "k")
		mustSet(t, b, "k", "of b")
		synctest.Wait()
		if err := b.Delete(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := a.Stats().LocalHits
		wantGet(t, a, "k", "of a")
		if a.Stats().LocalHits != before+1 {
			t.Error("b's writes moved a's L1")
		}
	})
}

// TestForeignValues: whatever stands at a value's key is a miss at worst.
func TestForeignValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := memory.New(nil)
		c := open[user](t, one(shard), &tiercache.Options{LocalBytes: -1})
		mustSet(t, c, "good", user{Name: "Ada"})
		good, _ := shard.Do(t.Context(), []string{"GET", "tc:good"})
		text := good.(string)
		bad := []string{"", "x", "tc", "tc\x01", text[:20], text[:37], text[:len(text)-1], "tc\x02" + text[3:],
			text[:35] + "\x80" + text[36:], text[:36] + "\x63" + text[37:], strings.Repeat("\x00", 60)}
		for i, junk := range bad {
			if _, err := shard.Do(t.Context(), []string{"SET", "tc:k", junk}); err != nil {
				t.Fatal(err)
			}
			wantNone(t, c, "k")
			if s := c.Stats(); s.Corrupt != uint64(i+1) {
				t.Errorf("%q: got %d corrupt values, want %d", junk, s.Corrupt, i+1)
			}
		}
		for i := range text { // no byte of a good one makes it panic
			for _, b := range []byte{0, 0xff, text[i] ^ 1} {
				if _, err := shard.Do(t.Context(), []string{"SET", "tc:k", text[:i] + string([]byte{b}) + text[i+1:]}); err != nil {
					t.Fatal(err)
				}
				c.Get(t.Context(), "k")
			}
		}
		v, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (user, error) { return user{Name: "Bob"}, nil })
		if err != nil || v.Name != "Bob" && v.Name != "Ada" {
			t.Errorf("GetOrLoad over a foreign value: got %v, %v", v, err)
		}
		for _, junk := range []string{"", "tcs\x02", "tcs\x02" + strings.Repeat("\x00", 40), "tcs\x02" + strings.Repeat("\xff", 40) + "run", "tcs1 1 2 3 run, and more of another version", "other"} {
			time.Sleep(time.Microsecond) // the next epoch is another only in another microsecond, and this clock stands still
			if _, err := shard.Do(t.Context(), []string{"SET", "tc#state", junk}); err != nil {
				t.Fatal(err)
			}
			wantNone(t, c, "good")
			mustSet(t, c, "good", user{Name: "Ada"})
			if v, err := c.Get(t.Context(), "good"); err != nil || v.Name != "Ada" {
				t.Errorf("state %q: got %v, %v after a Set", junk, v, err)
			}
		}
		for _, junk := range []string{"", "x", strings.Repeat("\x00", 16), strings.Repeat("\xff", 16) + "3:abc", strings.Repeat("\x00", 16) + "9:abc", strings.Repeat("\x00", 16) + "x", strings.Repeat("\x00", 16) + "3:abc4"} {
			if _, err := shard.Do(t.Context(), []string{"PUBLISH", "tc#notices", junk}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		time.Sleep(bound)
		if v, err := c.Get(t.Context(), "good"); err != nil || v.Name != "Ada" {
			t.Errorf("after foreign notices: got %v, %v", v, err)
		}
	})
}

func three() (map[string]tiercache.Shard, []*faulty) {
	shards := map[string]tiercache.Shard{}
	var networks []*faulty
	for _, name := range []string{"a", "b", "c"} {
		f := &faulty{Shard: memory.New(nil)}
		shards[name] = f
		networks = append(networks, f)
	}
	return shards, networks
}

func manyKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key:", i)
	}
	return keys
}

// TestManyRoundTrips: a thousand keys over three shards take one command each.
func TestManyRoundTrips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards, networks := three()
		c := open[int](t, shards, &tiercache.Options{LocalBytes: -1, Heartbeat: time.Hour})
		synced(t, c)
		keys := manyKeys(1000)
		values := map[string]int{}
		for i, key := range keys {
			values[key] = i
		}
		if err := c.SetMany(t.Context(), values); err != nil {
			t.Fatal(err)
		}
		for _, f := range networks {
			f.commands.Store(0)
		}
		got, err := c.GetMany(t.Context(), keys, nil)
		if err != nil || len(got) != len(keys) {
			t.Fatalf("got %d of %d, %v", len(got), len(keys), err)
		}
		for key, want := range values {
			if got[key] != want {
				t.Fatalf("%s: got %d, want %d", key, got[key], want)
			}
		}
		for i, f := range networks {
			if n := f.commands.Load(); n != 1 {
				t.Errorf("shard %d: got %d commands, want 1", i, n)
			}
		}
		if err := c.DeleteMany(t.Context(), keys[:500]...); err != nil {
			t.Fatal(err)
		}
		var loads [][]string
		got, err = c.GetMany(t.Context(), append(keys, keys[0]), func(_ context.Context, missing []string) (map[string]int, error) {
			loads = append(loads, missing)
			m := map[string]int{}
			for _, key := range missing[:400] {
				m[key] = -1
			}
			return m, nil
		})
		if err != nil || len(loads) != 1 || len(loads[0]) != 500 || len(got) != 900 {
			t.Fatalf("got %d values, %v, with %d loads, want 900 with one of 500", len(got), err, len(loads))
		}
		got, err = c.GetMany(t.Context(), keys, func(_ context.Context, missing []string) (map[string]int, error) {
			t.Errorf("loaded again: %d keys", len(missing))
			return nil, nil
		})
		if err != nil || len(got) != 900 {
			t.Errorf("again: got %d, %v, want 900: 100 are known not to exist", len(got), err)
		}
	})
}

// TestManyWithOneShardGone: the other shards' values come back, and the error
// names the keys of the one that is gone.
func TestManyWithOneShardGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards, networks := three()
		c := open[int](t, shards, &tiercache.Options{LocalBytes: -1})
		synced(t, c)
		keys := manyKeys(300)
		values := map[string]int{}
		for i, key := range keys {
			values[key] = i
		}
		if err := c.SetMany(t.Context(), values); err != nil {
			t.Fatal(err)
		}
		networks[1].cut.Store(true)
		check := func(op string, got map[string]int, err error) {
			t.Helper()
			var failed *tiercache.KeysError
			if !errors.As(err, &failed) {
				t.Fatalf("%s: got %v, want a *KeysError", op, err)
			}
			var shard *tiercache.ShardError
			if !errors.As(err, &shard) || shard.Shard != "b" {
				t.Errorf("%s: got %v, want a *ShardError of b within", op, err)
			}
			for _, key := range keys {
				gone := c.Ring().Locate(key) == "b"
				_, there := got[key]
				if e := failed.Errs[key]; (e != nil) != gone || got != nil && there == gone {
					t.Fatalf("%s: key %s of shard %s: value %v, error %v", op, key, c.Ring().Locate(key), there, e)
				}
			}
		}
		start := time.Now()
		got, err := c.GetMany(t.Context(), keys, nil)
		check("get", got, err)
		var set, deleted error
		var wg sync.WaitGroup // at one time, or others stand in for b before the second
		wg.Go(func() { set = c.SetMany(t.Context(), values) })
		wg.Go(func() { deleted = c.DeleteMany(t.Context(), keys...) })
		wg.Wait()
		check("set", nil, set)
		check("delete", nil, deleted)
		if d := time.Since(start); d > 1600*time.Millisecond {
			t.Errorf("three operations took %v: more than a time-out each", d)
		}
		all, err := c.GetMany(t.Context(), keys, func(_ context.Context, missing []string) (map[string]int, error) {
			m := map[string]int{}
			for _, key := range missing {
				m[key] = -1
			}
			return m, nil
		})
		if err != nil || len(all) != len(keys) {
			t.Errorf("with a loader: got %d of %d, %v", len(all), len(keys), err)
		}
		_, err = c.GetMany(t.Context(), []string{"new"}, func(context.Context, []string) (map[string]int, error) { return nil, errors.New("down") })
		var load *tiercache.LoadError
		if !errors.As(err, &load) {
			t.Errorf("a loader that fails: got %v, want a *LoadError", err)
		}
	})
}

// TestAllShardsGone: nobody waits for long, loaders run, once for all who ask.
func TestAllShardsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards, networks := three()
		c := open[int](t, shards, nil)
		synced(t, c)
		for _, f := range networks {
			f.cut.Store(true)
		}
		time.Sleep(bound)
		var loads atomic.Int64
		load := func(context.Context) (int, error) {
			loads.Add(1)
			time.Sleep(50 * time.Millisecond)
			return 7, nil
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				if v, err := c.GetOrLoad(t.Context(), "k", load); v != 7 || err != nil {
					t.Errorf("got %v, %v, want the loader's 7", v, err)
				}
			})
		}
		wg.Wait()
		if d := time.Since(start); d > 600*time.Millisecond {
			t.Errorf("took %v, want at most one time-out and the load", d)
		}
		if n := loads.Load(); n != 1 {
			t.Errorf("got %d loads, want 1", n)
		}
		if v, err := c.GetOrLoad(t.Context(), "k", load); v != 7 || err != nil || loads.Load() != 1 {
			t.Errorf("a moment later: got %v, %v and %d loads, want 7 from L1", v, err, loads.Load())
		}
		for range 20 { // until the breaker of each shard is open
			for i := range 3 {
				c.Set(t.Context(), fmt.Sprint(i), 1)
			}
		}
		start = time.Now()
		err := c.Set(t.Context(), "k", 1)
		if d := time.Since(start); d > 10*time.Millisecond || !errors.Is(err, tiercache.ErrUnavailable) {
			t.Errorf("with an open breaker: got %v after %v, want ErrUnavailable at once", err, d)
		}
		for _, f := range networks {
			f.cut.Store(false)
		}
		time.Sleep(2 * bound)
		mustSet(t, c, "k", 8)
		wantGet(t, c, "k", 8)
	})
}

// TestCallersContext: a caller that leaves does not end the load of the others.
func TestCallersContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open[int](t, one(memory.New(nil)), nil)
		synced(t, c)
		load := func(ctx context.Context) (int, error) {
			select {
			case <-time.After(time.Second):
				return 1, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		leader, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := c.GetOrLoad(leader, "k", load); left <- err }()
		synctest.Wait()
		stays := make(chan error, 1)
		go func() { _, err := c.GetOrLoad(context.Background(), "k", load); stays <- err }()
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("who left: got %v, want Canceled", err)
		}
		if err := <-stays; err != nil {
			t.Errorf("who stayed: got %v", err)
		}
	})
}

func TestLoaderMisbehaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open[int](t, one(memory.New(nil)), &tiercache.Options{LoadTimeout: time.Second})
		synced(t, c)
		var panicked *tiercache.PanicError
		if _, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { panic("ouch") }); !errors.As(err, &panicked) || panicked.Value != "ouch" {
			t.Errorf("a panic: got %v, want a *PanicError", err)
		}
		boom := errors.New("boom")
		if _, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { return 0, boom }); !errors.Is(err, boom) {
			t.Errorf("an error: got %v, want boom", err)
		}
		hang := make(chan struct{})
		start := time.Now()
		_, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { <-hang; return 0, nil })
		if d := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || d > 1100*time.Millisecond {
			t.Errorf("a loader that hangs: got %v after %v, want DeadlineExceeded after 1 s", err, d)
		}
		close(hang)
		if v, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { return 3, nil }); v != 3 || err != nil {
			t.Errorf("afterwards: got %v, %v, want 3", v, err)
		}
		c.Close()
		if _, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (int, error) { return 3, nil }); !errors.Is(err, tiercache.ErrClosed) {
			t.Errorf("after Close: got %v, want ErrClosed", err)
		}
		if err := c.Set(t.Context(), "k", 1); !errors.Is(err, tiercache.ErrClosed) {
			t.Errorf("Set after Close: got %v, want ErrClosed", err)
		}
	})
}

func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open[[]byte](t, one(memory.New(nil)), &tiercache.Options{Shared: true})
		synced(t, c)
		mustSet(t, c, "k", []byte("abc"))
		a, _ := c.Get(t.Context(), "k")
		b, _ := c.Get(t.Context(), "k")
		if &a[0] != &b[0] {
			t.Error("two hits have two copies")
		}
	})
}
