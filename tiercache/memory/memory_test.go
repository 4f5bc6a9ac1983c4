package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/shardkit/shardkit/tiercache/memory"
)

func do(t *testing.T, s *memory.Shard, cmd ...string) any {
	t.Helper()
	v, err := s.Do(t.Context(), cmd)
	if err != nil {
		t.Fatalf("%q: %v", cmd, err)
	}
	return v
}

// A restarted server has another run id and the data that was saved last, and
// has dropped its subscribers.
func TestRestart(t *testing.T) {
	s := memory.New(nil)
	do(t, s, "SET", "k", "old")
	s.Save()
	do(t, s, "SET", "k", "new")
	run := do(t, s, "INFO", "server")
	ready, ended := make(chan func(context.Context) error, 1), make(chan error, 1)
	go func() {
		ended <- s.Subscribe(t.Context(), []string{"c"}, func(ping func(context.Context) error) { ready <- ping }, func(string, string) {})
	}()
	ping := <-ready
	s.Restart()
	if err := <-ended; err == nil || t.Context().Err() != nil {
		t.Errorf("Subscribe returned %v", err)
	}
	if err := ping(t.Context()); err == nil {
		t.Error("ping of a dropped subscription returned nil")
	}
	if v := do(t, s, "GET", "k"); v != "old" {
		t.Errorf("got %v, want what was saved", v)
	}
	if do(t, s, "INFO", "server") == run {
		t.Error("the run id is the same")
	}
	do(t, s, "SET", "k", "newer")
	s.Restart()
	if v := do(t, s, "GET", "k"); v != "old" {
		t.Errorf("after a second restart: got %v, want what was saved", v)
	}
}

// Lives end by the clock that New was given.
func TestClock(t *testing.T) {
	now := time.Unix(1700000000, 0)
	s := memory.New(&memory.Options{Now: func() time.Time { return now }})
	do(t, s, "SET", "k", "v", "PX", "1500")
	do(t, s, "SET", "forever", "v")
	if v := do(t, s, "PTTL", "k"); v != int64(1500) {
		t.Errorf("PTTL: got %v, want 1500", v)
	}
	now = now.Add(1499 * time.Millisecond)
	if v := do(t, s, "GET", "k"); v != "v" {
		t.Errorf("1 ms before its end: got %v", v)
	}
	now = now.Add(time.Millisecond)
	if v := do(t, s, "EXISTS", "k", "forever"); v != int64(1) {
		t.Errorf("at its end: %v of 2 keys exist, want 1", v)
	}
}

// A subscriber that lets 32 MB wait is dropped, as a server drops it.
func TestSlowSubscriber(t *testing.T) {
	s := memory.New(nil)
	ready, ended, blocked := make(chan struct{}), make(chan error, 1), make(chan struct{})
	go func() {
		ended <- s.Subscribe(t.Context(), []string{"c"}, func(func(context.Context) error) { close(ready) }, func(string, string) { <-blocked })
	}()
	<-ready
	payload := string(make([]byte, 1<<20))
	for range 40 {
		do(t, s, "PUBLISH", "c", payload)
	}
	close(blocked)
	if v := do(t, s, "PUBLISH", "c", "m"); v != int64(0) {
		t.Errorf("%v subscribers are left", v)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("Subscribe returned nil")
		}
	case <-time.After(10 * time.Second):
		t.Error("the subscription stands")
	}
}
