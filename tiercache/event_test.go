package tiercache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// told keeps events for a test.
type told struct {
	mu     sync.Mutex
	events []tiercache.Event
}

func (r *told) add(e tiercache.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// take returns what was told since it was last called.
func (r *told) take() []tiercache.Event {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.events = nil }()
	return r.events
}

func kinds(events []tiercache.Event) (list []tiercache.EventKind) {
	for _, e := range events {
		list = append(list, e.Kind)
	}
	return list
}

func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard told
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		a := open[int](t, one(network), &tiercache.Options{OnEvent: heard.add})
		b := open[int](t, one(shard), nil)
		want := func(what string, want ...tiercache.EventKind) []tiercache.Event {
			t.Helper()
			got := heard.take()
			if !slices.Equal(kinds(got), want) {
				t.Errorf("%s: got %v, want the kinds %v", what, got, want)
			}
			for _, e := range got {
				if e.Shard != "a" || e.Count != 1 || time.Since(e.Time) > 10*time.Second {
					t.Errorf("%s: got %+v, want shard a, count 1, a time of the test", what, e)
				}
			}
			return got
		}
		synced(t, a, b)
		want("at the beginning", tiercache.EventListening)

		network.swallow.Store(true)
		mustSet(t, b, "k", 1)
		synctest.Wait()
		network.swallow.Store(false)
		time.Sleep(bound)
		want("a lost notice", tiercache.EventGap, tiercache.EventListening)

		network.deaf.Store(true)
		time.Sleep(2 * bound)
		network.deaf.Store(false)
		time.Sleep(2 * bound)
		got := want("a silent subscription", tiercache.EventLost, tiercache.EventListening)
		if len(got) > 0 && (got[0].Err == nil || !strings.Contains(got[0].Err.Error(), "silent")) {
			t.Errorf("got the reason %v, want that it was silent", got[0].Err)
		}

		shard.Restart()
		time.Sleep(bound)
		got = want("a restart", tiercache.EventLost, tiercache.EventListening)
		if len(got) > 0 && (got[0].Err == nil || !strings.Contains(got[0].Err.Error(), "restarted")) {
			t.Errorf("got the reason %v, want what Subscribe returned", got[0].Err)
		}

		if _, err := shard.Do(t.Context(), []string{"FLUSHALL"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(bound)
		want("FLUSHALL", tiercache.EventEpoch, tiercache.EventListening)

		if _, err := shard.Do(t.Context(), []string{"SET", "tc:bad", "no envelope"}); err != nil {
			t.Fatal(err)
		}
		wantNone(t, a, "bad")
		if got := want("a foreign value", tiercache.EventCorrupt); len(got) > 0 && got[0].Key != "bad" {
			t.Errorf("got the key %q, want bad", got[0].Key)
		}

		v, err := a.GetOrLoad(t.Context(), "k2", func(ctx context.Context) (int, error) { return 1, b.Delete(ctx, "k2") })
		if v != 1 || err != nil {
			t.Errorf("got %v, %v", v, err)
		}
		if got := want("a fill that came late", tiercache.EventFillRefused); len(got) > 0 && got[0].Key != "k2" {
			t.Errorf("got the key %q, want k2", got[0].Key)
		}

		network.cut.Store(true)
		for range 10 {
			a.Get(t.Context(), "k3")
		}
		network.cut.Store(false)
		time.Sleep(2 * bound)
		a.Get(t.Context(), "k3")
		heardKinds := kinds(heard.take())
		opened, shut := slices.Index(heardKinds, tiercache.EventBreakerOpen), slices.Index(heardKinds, tiercache.EventBreakerShut)
		if opened < 0 || shut < opened {
			t.Errorf("a cut: got %v, want the breaker opened, and shut later", heardKinds)
		}

		a.Close()
		want("Close")
	})
}

// TestEventsOfKeys: what each key can cause is told once a second, with how often
// it was.
func TestEventsOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard told
		shard := memory.New(nil)
		a := open[int](t, one(shard), &tiercache.Options{OnEvent: heard.add})
		synced(t, a)
		heard.take()
		read := func(n int) {
			for i := range n {
				key := fmt.Sprint("bad", i)
				if _, err := shard.Do(t.Context(), []string{"SET", "tc:" + key, "no envelope"}); err != nil {
					t.Fatal(err)
				}
				wantNone(t, a, key)
				synctest.Wait()
			}
		}
		read(100)
		if got := heard.take(); len(got) != 1 || got[0].Count != 1 || got[0].Key != "bad0" {
			t.Errorf("at once: got %+v, want one event of bad0", got)
		}
		time.Sleep(time.Second)
		if got := heard.take(); len(got) != 1 || got[0].Count != 99 || got[0].Key != "bad99" {
			t.Errorf("after a second: got %+v, want one event of bad99 that stands for 99", got)
		}
		read(2)
		a.Close()
		if got := heard.take(); len(got) != 1 || got[0].Count != 2 {
			t.Errorf("at Close: got %+v, want what was left to tell, one event that stands for 2", got)
		}
	})
}

// TestSlowEvents: a function that hangs holds up nobody but itself, may use the
// cache, and finds out what it missed.
func TestSlowEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard told
		shard := memory.New(nil)
		network := &faulty{Shard: shard}
		block := make(chan struct{})
		var a *tiercache.Cache[int]
		opened := make(chan struct{})
		a = open[int](t, one(network), &tiercache.Options{OnEvent: func(e tiercache.Event) {
			<-opened
			<-block
			a.Stats()
			if err := a.Set(context.Background(), "from the function", 1); err != nil {
				t.Error(err)
			}
			heard.add(e)
		}})
		close(opened)
		synced(t, a)
		const rounds = 50
		for i := range rounds {
			network.deaf.Store(true)
			time.Sleep(2 * bound)
			network.deaf.Store(false)
			time.Sleep(bound)
			mustSet(t, a, "k", i)
			wantGet(t, a, "k", i)
		}
		close(block)
		got := heard.take()
		if want := []tiercache.EventKind{tiercache.EventListening, tiercache.EventLost, tiercache.EventListening}; !slices.Equal(kinds(got), want) {
			t.Fatalf("got %v, want the kinds %v", got, want)
		}
		if got[1].Count != rounds || got[2].Count != rounds {
			t.Errorf("got counts of %d and %d, want %d", got[1].Count, got[2].Count, rounds)
		}
	})
}

func TestLogEvents(t *testing.T) {
	var out bytes.Buffer
	log := tiercache.LogEvents(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})))
	log(tiercache.Event{Kind: tiercache.EventLost, Shard: "a", Count: 1, Err: errors.New("EOF")})
	log(tiercache.Event{Kind: tiercache.EventFillRefused, Shard: "b", Key: "k", Count: 3})
	log(tiercache.Event{Kind: 1000, Shard: "c"})
	const want = `level=WARN msg="tiercache: the shard's subscription was lost" shard=a err=EOF
level=DEBUG msg="tiercache: a loaded value was not stored" shard=b key=k count=3
level=INFO msg="tiercache: unknown" shard=c
`
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for kind := tiercache.EventListening; kind.String() != "unknown"; kind++ {
		if strings.TrimSpace(kind.String()) == "" {
			t.Errorf("kind %d has no name", kind)
		}
	}
}
