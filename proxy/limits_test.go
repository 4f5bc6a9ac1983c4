package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardkit/shardkit/proxy"
	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// gated is a shard that can be held, and be out.
type gated struct {
	tiercache.Shard
	mu   sync.Mutex
	gone bool
	fail string        // this command fails
	hold chan struct{} // until it is closed commands of callers wait
}

var errGone = errors.New("connection refused")

func (g *gated) state() (bool, chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gone, g.hold
}

func (g *gated) set(gone bool, hold chan struct{}, fail ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone, g.hold, g.fail = gone, hold, strings.Join(fail, "")
}

func (g *gated) Do(ctx context.Context, cmd []string) (any, error) {
	gone, hold := g.state()
	if gone || g.fails(cmd) {
		return nil, errGone
	}
	if hold != nil && cmd[0] == "MGET" {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return g.Shard.Do(ctx, cmd)
}

func (g *gated) fails(cmd []string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fail == cmd[0]
}

func (g *gated) Pipeline(ctx context.Context, cmds [][]string) []any {
	replies := make([]any, len(cmds))
	for i, cmd := range cmds {
		v, err := g.Do(ctx, cmd)
		if replies[i] = v; err != nil {
			replies[i] = err
		}
	}
	return replies
}

// Subscribe ends soon after the shard has gone.
func (g *gated) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(channel, payload string)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			if gone, _ := g.state(); gone {
				cancel()
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return g.Shard.Subscribe(ctx, channels, onReady, onMessage)
}

func TestMaxInFlight(t *testing.T) {
	shard := &gated{Shard: memory.New(nil)}
	s := openOver(t, map[string]tiercache.Shard{"a": shard}, &proxy.Options{MaxInFlight: 2})
	s.ask(t, "GET", "/cache/k", "").wantError(t, 404) // from here on the shard's clock is known
	within(t, time.Minute, "the shard is in", func() bool { return s.ask(t, "GET", "/health", "").status == 200 })
	hold := make(chan struct{})
	shard.set(false, hold)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { s.ask(t, "GET", "/cache/k", "").wantError(t, 404) })
	}
	within(t, time.Minute, "two requests are under way", func() bool { return s.Snapshot().Requests.InFlight == 2 })
	for _, r := range []reply{s.ask(t, "GET", "/cache/k", ""), s.ask(t, "PUT", "/cache/k", `{"value": 1}`), s.ask(t, "POST", "/mget", `{"keys": ["k"]}`)} {
		if r.wantError(t, 503, "2 requests"); r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	for _, path := range []string{"/health", "/metrics", "/"} {
		s.ask(t, "GET", path, "").want(t, 200)
	}
	close(hold)
	wg.Wait()
	s.ask(t, "PUT", "/cache/k", `{"value": 1}`).want(t, 201)
	if m := s.ask(t, "GET", "/metrics", "").body; !strings.Contains(m, "shardkit_http_requests_rejected_total 3") {
		t.Error("the three are not counted")
	}
}

// keyOf returns a key that the shard owns.
func keyOf(t *testing.T, s *site, shard string) string {
	t.Helper()
	for i := range 10_000 {
		key := "key-" + strings.Repeat("x", i)
		if s.Owner(key) == shard {
			return key
		}
	}
	t.Fatal("no key for " + shard)
	return ""
}

func TestHealth(t *testing.T) {
	a, b := &gated{Shard: memory.New(nil)}, &gated{Shard: memory.New(nil)}
	s := openOver(t, map[string]tiercache.Shard{"a": a, "b": b}, nil)
	health := func() (status int, h proxy.Health) {
		got := s.ask(t, "GET", "/health", "")
		if err := json.Unmarshal([]byte(got.body), &h); err != nil {
			t.Fatal(err)
		}
		return got.status, h
	}
	become := func(status int, word, stateA, stateB string) proxy.Health {
		t.Helper()
		var last proxy.Health
		within(t, time.Minute, word, func() bool {
			got, h := health()
			last = h
			return got == status && h.Status == word && h.Shards[0].State == stateA && h.Shards[1].State == stateB
		})
		return last
	}
	become(200, "ok", "serving", "serving")
	ofA, ofB := keyOf(t, s, "a"), keyOf(t, s, "b")
	s.ask(t, "PUT", "/cache/"+ofB, `{"value": 2}`).want(t, 201)

	// Reads of a fail, and nothing else: a serves.
	a.set(false, nil, "MGET")
	if r := s.ask(t, "GET", "/cache/"+ofA, "").wantError(t, 503, `"a"`); r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s.ask(t, "POST", "/mget", `{"keys": ["`+ofA+`"]}`).wantError(t, 503)
	got := s.ask(t, "POST", "/mget", `{"keys": ["`+ofA+`", "`+ofB+`"]}`).want(t, 200)
	if !strings.Contains(got.body, `"values":{"`+ofB+`":2},"errors":{"`+ofA+`":`) {
		t.Errorf("got %s, want one value and one error", got.body)
	}
	become(200, "ok", "serving", "serving")

	// All of a fails: b stands in for it.
	before := time.Now()
	a.set(true, nil)
	h := become(200, "degraded", "out", "serving")
	if since := h.Shards[0].Since; since.Before(before) || since.After(time.Now()) {
		t.Errorf("a is out since %v, which is not after %v", since, before)
	}
	if !strings.Contains(h.Shards[0].Error, errGone.Error()) || h.Shards[1].Error != "" {
		t.Errorf("got %+v, want the reason why a is out", h.Shards)
	}
	for _, key := range []string{ofA, ofB} {
		within(t, time.Minute, "b takes "+key, func() bool {
			return s.ask(t, "PUT", "/cache/"+key, `{"value": 3}`).status == 201
		})
		s.ask(t, "GET", "/cache/"+key, "").want(t, 200, `{"key":"`+key+`","value":3}`)
	}
	if m := s.ask(t, "GET", "/metrics", "").body; !strings.Contains(m, `shardkit_shard_up{shard="a"} 0`) || !strings.Contains(m, `shardkit_shard_up{shard="b"} 1`) {
		t.Error("metrics do not tell which is out")
	}
	within(t, time.Minute, "the page tells which is out", func() bool {
		return strings.Contains(s.ask(t, "GET", "/", "").body, "a is out since")
	})

	b.set(true, nil)
	become(503, "down", "out", "out")
	for _, r := range []reply{s.ask(t, "PUT", "/cache/"+ofA, `{"value": 4}`), s.ask(t, "GET", "/cache/"+ofB+"-other", "")} {
		if r.wantError(t, 503); r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	s.ask(t, "GET", "/health/live", "").want(t, 200)
	a.set(false, nil)
	b.set(false, nil)
	become(200, "ok", "serving", "serving")
	within(t, time.Minute, "a takes writes again", func() bool {
		return s.ask(t, "PUT", "/cache/"+ofA, `{"value": 1}`).status == 201
	})
}

func TestMetrics(t *testing.T) {
	s := open(t, nil)
	s.ask(t, "PUT", "/cache/k", `{"value": 1}`).want(t, 201)
	for range 3 {
		s.ask(t, "GET", "/cache/k", "").want(t, 200)
	}
	s.ask(t, "GET", "/cache/none", "").wantError(t, 404)
	s.ask(t, "FROBNICATE", "/cache/k", "").wantError(t, 405)
	m := s.ask(t, "GET", "/metrics", "").want(t, 200)
	if !strings.HasPrefix(m.header.Get("Content-Type"), "text/plain") {
		t.Errorf("got type %q", m.header.Get("Content-Type"))
	}
	for _, line := range []string{
		`shardkit_http_request_duration_seconds_count{code="201",method="PUT",route="cache"} 1`,
		`shardkit_http_request_duration_seconds_count{code="200",method="GET",route="cache"} 3`,
		`shardkit_http_request_duration_seconds_count{code="404",method="GET",route="cache"} 1`,
		`shardkit_http_request_duration_seconds_count{code="405",method="other",route="cache"} 1`,
		`tiercache_reads_total{cache="proxy",tier="none"} 1`,
		`go_goroutines `,
	} {
		if !strings.Contains(m.body, line) {
			t.Errorf("no %s", line)
		}
	}
	var snap proxy.Snapshot
	got := s.ask(t, "GET", "/metrics", "", "Accept", "application/json").want(t, 200)
	if err := json.Unmarshal([]byte(got.body), &snap); err != nil {
		t.Fatal(err)
	}
	if snap.Requests.Total != 6 || snap.HitRatio != 0.75 || snap.Reads.Misses != 1 || len(snap.Shards) != 3 || len(snap.Ring.Remaps) != 2 {
		t.Errorf("got %+v, want 6 requests of which 3 of 4 reads hit, 3 shards and 2 remaps", snap)
	}
	for _, shard := range snap.Shards {
		if shard.Commands == 0 || shard.Errors != 0 {
			t.Errorf("%s: %d of %d commands failed, want none of some", shard.Name, shard.Errors, shard.Commands)
		}
	}
	for _, r := range snap.Ring.Remaps {
		if !(r.Ring < r.Modulo) {
			t.Errorf("%s: the ring moves %v, modulo %v", r.Change, r.Ring, r.Modulo)
		}
	}
}

// served is a proxy behind its own server.
func served(t *testing.T, shards map[string]tiercache.Shard) (addr string, stop func() error) {
	t.Helper()
	p, err := proxy.New(shards, &proxy.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, l) }()
	stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() {
		stop()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), stop
}

// TestDrain: a request that is under way when the proxy stops is answered, and no
// new one is taken.
func TestDrain(t *testing.T) {
	shard := &gated{Shard: memory.New(nil)}
	addr, stop := served(t, map[string]tiercache.Shard{"a": shard})
	hold := make(chan struct{})
	first := dialAddr(t, addr)
	first.send("GET /cache/k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if line := first.line(); !strings.Contains(line, " 404 ") {
		t.Fatalf("got %q", line)
	}
	before := make(chan struct{})
	shard.set(false, hold)
	slow := dialAddr(t, addr)
	slow.send("GET /cache/k HTTP/1.1\r\nHost: x\r\n\r\n")
	watcher := dialAddr(t, addr)
	within(t, time.Minute, "the request is under way", func() bool {
		watcher.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(watcher.r, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var b strings.Builder
		if err := res.Write(&b); err != nil {
			t.Fatal(err)
		}
		return strings.Contains(b.String(), "shardkit_http_requests_in_flight 1")
	})
	go func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
		close(before)
	}()
	within(t, time.Minute, "no connection is taken any more", func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	select {
	case <-before:
		t.Error("it stopped before the request was answered")
	default:
	}
	close(hold)
	if line := slow.line(); !strings.Contains(line, " 404 ") {
		t.Errorf("got %q, want the answer", line)
	}
	<-before
}

// TestSlowClients: 5,000 connections that say nothing and 500 that begin a request
// and do not go on take nobody's place.
func TestSlowClients(t *testing.T) {
	idle, slow := 5000, 500
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Skip(err)
	}
	if most := int(limit.Cur)/2 - 500; idle+slow > most {
		idle = most - slow // both ends are files of this process
		t.Logf("%d idle connections, as no more files may be open", idle)
	}
	addr, _ := served(t, map[string]tiercache.Shard{"a": memory.New(nil)})
	var first *conn
	for i := range idle + slow {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer c.Close()
		if i >= idle {
			if _, err := c.Write([]byte("PUT /cache/k HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")); err != nil {
				t.Fatal(err)
			}
		}
		if i == idle {
			first = dialAddr(t, addr)
		}
	}
	first.send("PUT /cache/k HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{\"value\": 1}")
	if line := first.line(); !strings.Contains(line, " 201 ") {
		t.Errorf("got %q, want 201", line)
	}
}

// TestSlowloris: who does not send a header in time is cut off.
func TestSlowloris(t *testing.T) {
	addr, _ := served(t, map[string]tiercache.Shard{"a": memory.New(nil)})
	c := dialAddr(t, addr)
	c.send("GET /cache/k HTTP/1.1\r\n")
	start := time.Now()
	if _, err := c.r.ReadByte(); err == nil || time.Since(start) > 20*time.Second {
		t.Errorf("after %v: %v; want the connection closed in some 5 s", time.Since(start), err)
	}
}
