package proxy_test

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

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
	for _, url := range regexp.MustCompile(`(?:src|href|url)\s*[=(]\s*["']?([^"' )>]+)`).FindAllStringSubmatch(got.body, -1) {
		if !strings.HasPrefix(url[1], "/") && url[1] != "data:," {
			t.Errorf("the page names %q, which is not here", url[1])
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

// TestDashboardOfOneShard: nothing can be taken away from it.
func TestDashboardOfOneShard(t *testing.T) {
	s := openOver(t, map[string]tiercache.Shard{"only": memory.New(nil)}, nil)
	if body := s.ask(t, "GET", "/", "").want(t, 200).body; !strings.Contains(body, "one shard more") || strings.Contains(body, "one shard fewer") {
		t.Error("want what one shard more would move, and nothing else")
	}
}
