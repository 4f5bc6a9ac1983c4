package proxy_test

import (
	"encoding/xml"
	"io"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

func TestDashboard(t *testing.T) {
	s := open(t, nil)
	s.ask(t, "PUT", "/cache/k", `{"value": 1}`).want(t, 201)
	s.ask(t, "GET", "/cache/k", "").want(t, 200)
	got := s.ask(t, "GET", "/", "").want(t, 200)
	policy := got.header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("got policy %q, want %q", policy, want)
		}
	}
	for _, at := range regexp.MustCompile(`(?:src|href|url)\s*[=(]\s*["']?([^"' )>]+)`).FindAllStringSubmatch(got.body, -1) {
		if !strings.HasPrefix(at[1], "/") && at[1] != "data:," {
			t.Errorf("the page names %q, which is not here", at[1])
		}
	}
	if n := strings.Count(got.body, `role="img" aria-label="`); n != strings.Count(got.body, "<svg") || n < 4 {
		t.Errorf("%d charts with a label, of %d", n, strings.Count(got.body, "<svg"))
	}
	if strings.Contains(got.body, "rgb(") {
		t.Error("a chart has a colour of its own, which is wrong in one of light and dark")
	}
	for path, kind := range map[string]string{"/dashboard/style.css": "text/css", "/dashboard/script.js": "text/javascript"} {
		if got := s.ask(t, "GET", path, "").want(t, 200); !strings.HasPrefix(got.header.Get("Content-Type"), kind) {
			t.Errorf("%s: got type %q", path, got.header.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/dashboard/", "/dashboard/page.html", "/dashboard/none.css", "/dashboard/../go.mod", "/dashboard/%2e%2e/go.mod"} {
		s.ask(t, "GET", path, "").wantError(t, 404)
	}
}

// TestDashboardEscapes: a shard may be called anything.
func TestDashboardEscapes(t *testing.T) {
	name := `<script>alert("x")</script>&$1`
	s := openOver(t, map[string]tiercache.Shard{name: memory.New(nil), strings.Repeat("long", 50): memory.New(nil)}, nil)
	body := s.ask(t, "GET", "/", "").want(t, 200).body
	if strings.Contains(body, "<script>a") {
		t.Error("the name is in the page as it is")
	}
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(body, -1) {
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%v in %.300s", err, svg)
			}
		}
	}
	metrics := s.ask(t, "GET", "/metrics", "").want(t, 200).body
	if !strings.Contains(metrics, `tiercache_shard_commands_total{cache="proxy",shard="<script>alert(\"x\")</script>&$1"}`) {
		t.Errorf("metrics do not have the name: %s", metrics)
	}
}

// TestHotKeys: the page and the snapshot tell which keys are read most from shards,
// and whose they are.
func TestHotKeys(t *testing.T) {
	s := open(t, nil)
	if body := s.ask(t, "GET", "/", "").want(t, 200).body; !strings.Contains(body, "None: what this process holds") {
		t.Error("the page does not say that no key is hot")
	}
	missing := "gone/<b>" + strings.Repeat("long", 100)
	within(t, time.Minute, "the snapshot and the page have it", func() bool {
		s.ask(t, "GET", "/cache/"+url.PathEscape(missing), "").wantError(t, 404)
		hot := s.Snapshot().HotKeys
		if len(hot) == 0 {
			return false
		}
		if len(hot) != 1 || hot[0].Key != missing || len(hot[0].Shards) == 0 || hot[0].Shards[0] != s.Owner(missing) || !(hot[0].PerSecond >= 20) {
			t.Fatalf("got %v, want the key that is read more than 100 times in 5 s from %s", hot, s.Owner(missing))
		}
		body := s.ask(t, "GET", "/", "").body
		return strings.Contains(body, "gone/&lt;b&gt;longlong") && strings.Contains(body, "longlon…</th>")
	})
}

// TestDashboardOfOneShard: nothing can be taken away from it.
func TestDashboardOfOneShard(t *testing.T) {
	s := openOver(t, map[string]tiercache.Shard{"only": memory.New(nil)}, nil)
	if body := s.ask(t, "GET", "/", "").want(t, 200).body; !strings.Contains(body, "one shard more") || strings.Contains(body, "one shard fewer") {
		t.Error("want what one shard more would move, and nothing else")
	}
}
