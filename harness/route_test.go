package harness_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

// TestRouteBreaksAlone: who takes a route that is cut, stalled or slowed does not reach the node, and others do.
func TestRouteBreaksAlone(t *testing.T) {
	t.Parallel()
	s := startShards(t, harness.Options{Shards: 1})
	n := s.Nodes()[0]
	broken, err := n.Route("a")
	must(t, err)
	sound, err := n.Route("b")
	must(t, err)
	if broken.Node() != n || broken.Addr() == sound.Addr() || broken.Addr() == n.Addr() {
		t.Fatalf("two routes to %v: got %s to %v and %s, want addresses of their own", n, broken.Addr(), broken.Node(), sound.Addr())
	}
	const silence = 300 * time.Millisecond
	ask := func(addr string, patience time.Duration) (time.Duration, error) {
		start := time.Now()
		conn, err := net.DialTimeout("tcp", addr, patience)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(patience))
		if _, err = conn.Write([]byte("PING\r\n")); err == nil {
			_, err = conn.Read(make([]byte, 16))
		}
		return time.Since(start), err
	}
	reached := func(what string) {
		t.Helper()
		for _, addr := range []string{n.Addr(), sound.Addr()} {
			if _, err := ask(addr, time.Minute); err != nil {
				t.Errorf("%s: %s does not answer: %v", what, addr, err)
			}
		}
	}
	for what, fault := range map[string]func() error{"cut": broken.Cut, "stall": broken.Stall} {
		must(t, fault())
		if _, err := ask(broken.Addr(), silence); err == nil {
			t.Errorf("%s: it answers", what)
		}
		reached(what)
		must(t, broken.Mend())
		if _, err := ask(broken.Addr(), time.Minute); err != nil {
			t.Errorf("%s, mended: %v", what, err)
		}
	}
	must(t, broken.Slow(20*time.Millisecond))
	if took, err := ask(broken.Addr(), time.Minute); err != nil || took < 40*time.Millisecond {
		t.Errorf("slow: answered after %v, %v, want 40 ms at least", took, err)
	}
	must(t, broken.Swallow(func([]byte) bool { return true }))
	if _, err := ask(broken.Addr(), silence); err == nil {
		t.Error("swallow: it answers")
	}
	reached("swallow")
	must(t, broken.Mend())

	// It survives a restart, and ends with the group.
	must(t, n.Restart(within(t, time.Minute), harness.Empty))
	if _, err := ask(broken.Addr(), time.Minute); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if story := s.Timeline().String(); !strings.Contains(story, "shard-1 by a") {
		t.Errorf("the timeline does not name the route:\n%s", story)
	}
	must(t, s.Close())
	if _, err := ask(broken.Addr(), silence); err == nil {
		t.Error("a route answers after the group was closed")
	}
	if _, err := n.Route("late"); err == nil {
		t.Error("a closed group opens a route")
	}
}

func TestRouteUnsupportedByAddress(t *testing.T) {
	t.Parallel()
	own := startShards(t, harness.Options{Shards: 1})
	s, err := harness.StartShards(t.Context(), harness.Options{Addrs: own.Addrs()})
	must(t, err)
	t.Cleanup(func() { s.Close() })
	if _, err := s.Nodes()[0].Route("a"); !errors.Is(err, harness.ErrUnsupported) {
		t.Errorf("a route to a server named by address: got %v, want ErrUnsupported", err)
	}
}
