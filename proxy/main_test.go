package proxy_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/proxy"
	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a proxy that listens, over shards of its own.
type site struct {
	*proxy.Proxy
	*httptest.Server
	shards map[string]tiercache.Shard
}

func open(t testing.TB, opts *proxy.Options) *site {
	t.Helper()
	return openOver(t, map[string]tiercache.Shard{"a": memory.New(nil), "b": memory.New(nil), "c": memory.New(nil)}, opts)
}

func openOver(t testing.TB, shards map[string]tiercache.Shard, opts *proxy.Options) *site {
	t.Helper()
	var o proxy.Options
	if opts != nil {
		o = *opts
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p, err := proxy.New(shards, &o)
	if err != nil {
		t.Fatal(err)
	}
	s := &site{p, httptest.NewServer(p), shards}
	t.Cleanup(func() {
		s.Server.CloseClientConnections()
		s.Server.Close()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reply is an answer.
type reply struct {
	status int
	header http.Header
	body   string
}

// ask sends a request; headers come as name, value and so on. A PUT or POST that
// names no Content-Type is JSON.
func (s *site) ask(t testing.TB, method, path, body string, headers ...string) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if method == "PUT" || method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(text)}
}

// want fails unless the answer has the status and, where one is given, the body.
func (r reply) want(t testing.TB, status int, body ...string) reply {
	t.Helper()
	if r.status != status {
		t.Errorf("got %d %s, want %d", r.status, r.body, status)
	}
	for _, b := range body {
		if strings.TrimSuffix(r.body, "\n") != b {
			t.Errorf("got body %q, want %q", r.body, b)
		}
	}
	return r
}

// wantError fails unless the answer is one error in JSON that holds the words.
func (r reply) wantError(t testing.TB, status int, words ...string) reply {
	t.Helper()
	var e map[string]string
	if err := json.Unmarshal([]byte(r.body), &e); r.status != status || err != nil || len(e) != 1 || e["error"] == "" {
		t.Errorf("got %d %q, want %d and {\"error\": message}", r.status, r.body, status)
	}
	if got := r.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("got Content-Type %q", got)
	}
	for _, w := range words {
		if !strings.Contains(e["error"], w) {
			t.Errorf("got %q, want it to say %q", e["error"], w)
		}
	}
	return r
}

func within(t testing.TB, d time.Duration, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(d); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", d, what)
		}
	}
}
