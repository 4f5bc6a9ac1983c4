package proxy_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/proxy"
	"github.com/shardkit/shardkit/tiercache"
)

func TestPutGetDelete(t *testing.T) {
	s := open(t, nil)
	s.ask(t, "GET", "/cache/session:abc", "").wantError(t, 404)
	s.ask(t, "PUT", "/cache/session:abc", `{"value": {"userId": 42}, "ttlSeconds": 600}`).want(t, 201, `{"key":"session:abc"}`)
	got := s.ask(t, "GET", "/cache/session:abc", "").want(t, 200, `{"key":"session:abc","value":{"userId":42}}`)
	if left, err := strconv.ParseFloat(got.header.Get("Cache-Ttl"), 64); err != nil || left > 600 || left < 500 {
		t.Errorf("got Cache-Ttl %q, want a little less than 600", got.header.Get("Cache-Ttl"))
	}
	s.ask(t, "HEAD", "/cache/session:abc", "").want(t, 200, "")
	for range 2 {
		s.ask(t, "DELETE", "/cache/session:abc", "").want(t, 200)
	}
	s.ask(t, "GET", "/cache/session:abc", "").wantError(t, 404, "no such key")
}

func TestValues(t *testing.T) {
	s := open(t, nil)
	for _, v := range []string{
		`null`, `true`, `0`, `-1.5e300`, `12345678901234567890`, `""`, `"a\"\u0000\ud83d\ude00"`, `[]`, `{}`, `[1,[2,[3]]]`,
		`{"b":1,"a":2}`, `{"value":{"value":1}}`, `"data:text/plain;base64,eA=="`, `{"$base64":"eA=="}`, `{"$contentType":"text/plain","$base64":7}`,
		`{"$contentType":"","$base64":"eA=="}`, `{"$contentType":"a/b","$base64":"eA==","more":1}`,
	} {
		s.ask(t, "PUT", "/cache/k", `{"value": `+v+`}`).want(t, 201)
		got := s.ask(t, "GET", "/cache/k", "").want(t, 200)
		var have, want any
		if err := json.Unmarshal([]byte(got.body), &have); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(`{"key":"k","value":`+v+`}`), &want); err != nil {
			t.Fatal(err)
		}
		if h, w := mustJSON(t, have), mustJSON(t, want); h != w {
			t.Errorf("got %s, want %s", h, w)
		}
	}
	s.ask(t, "PUT", "/cache/n", `{"value": 12345678901234567890}`).want(t, 201)
	s.ask(t, "GET", "/cache/n", "").want(t, 200, `{"key":"n","value":12345678901234567890}`)
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRawValues(t *testing.T) {
	s := open(t, nil)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	s.ask(t, "PUT", "/cache/img", string(every), "Content-Type", "image/png", "Cache-Ttl", "90").want(t, 201)
	got := s.ask(t, "GET", "/cache/img", "").want(t, 200, string(every))
	if h := got.header; h.Get("Content-Type") != "image/png" || h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("got header %v", h)
	}
	if left, err := strconv.ParseFloat(got.header.Get("Cache-Ttl"), 64); err != nil || left > 90 || left < 30 {
		t.Errorf("got Cache-Ttl %q, want a little less than 90", got.header.Get("Cache-Ttl"))
	}
	form := `{"$contentType":"image/png","$base64":"` + base64.StdEncoding.EncodeToString(every) + `"}`
	s.ask(t, "POST", "/mget", `{"keys":["img"]}`).want(t, 200, `{"values":{"img":`+form+`}}`)
	s.ask(t, "PUT", "/cache/other", `{"value": `+form+`}`).want(t, 201)
	s.ask(t, "GET", "/cache/other", "").want(t, 200, string(every))
	s.ask(t, "PUT", "/cache/empty", "", "Content-Type", "text/plain; charset=utf-8").want(t, 201)
	if got := s.ask(t, "GET", "/cache/empty", "").want(t, 200, ""); got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("got header %v", got.header)
	}
}

// TestGoProgramsShareValues: JSON values are those of a Cache of the same
// namespace.
func TestGoProgramsShareValues(t *testing.T) {
	s := open(t, nil)
	type user struct{ Name string }
	users, err := tiercache.New[user](s.shards, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer users.Close()
	ctx := context.Background()
	if err := users.Set(ctx, "ada", user{"Ada <3"}); err != nil {
		t.Fatal(err)
	}
	s.ask(t, "GET", "/cache/ada", "").want(t, 200, `{"key":"ada","value":{"Name":"Ada \u003c3"}}`)
	s.ask(t, "PUT", "/cache/bob", `{"value": {"Name": "Bob"}}`).want(t, 201)
	if u, err := users.Get(ctx, "bob"); err != nil || u.Name != "Bob" {
		t.Errorf("got %v, %v; want Bob", u, err)
	}
}

func TestKeys(t *testing.T) {
	s := open(t, nil)
	for i, key := range []string{
		"a/b/c", "/", "//", "a//b", "/a/", "a/./b", "a/../b", "a b", "100%", "%2F", "%", "a+b", "?", "#", "a?b=c#d", "grüße", "日本語", "😀",
		"\"quoted\"", "a\\b", "a\nb", "\x00", "\x7f", strings.Repeat("k", 8192), strings.Repeat("ü", 4096),
	} {
		value := strconv.Itoa(i)
		path := "/cache/" + strings.ReplaceAll(url.PathEscape(key), ".", "%2E")
		s.ask(t, "PUT", path, `{"value": `+value+`}`).want(t, 201)
		got := s.ask(t, "GET", path, "").want(t, 200)
		var out struct {
			Key   string
			Value json.Number
		}
		if err := json.Unmarshal([]byte(got.body), &out); err != nil || out.Key != key || out.Value.String() != value {
			t.Errorf("%q: got %+v, %v; want value %s", key, out, err, value)
		}
		s.ask(t, "POST", "/mget", mustJSON(t, map[string]any{"keys": []string{key}})).want(t, 200, `{"values":{`+mustJSON(t, key)+`:`+value+`}}`)
	}
	s.ask(t, "GET", "/cache/a/b/c", "").want(t, 200) // slashes as they are
	s.ask(t, "GET", "/cache/a//b", "").want(t, 200)
	s.ask(t, "GET", "/cache/", "").wantError(t, 400, "empty")
	s.ask(t, "GET", "/cache/%ff", "").wantError(t, 400, "UTF-8")
	s.ask(t, "GET", "/cache/"+strings.Repeat("k", 8193), "").wantError(t, 414, "8193", "8192")
}

func TestBadRequests(t *testing.T) {
	s := open(t, &proxy.Options{MaxBody: 1000})
	for _, tc := range []struct {
		name, method, path, body string
		header                   []string
		status                   int
		words                    []string
	}{
		{"no value", "PUT", "/cache/k", `{}`, nil, 400, []string{"no value"}},
		{"no value but a life", "PUT", "/cache/k", `{"ttlSeconds": 5}`, nil, 400, []string{"no value"}},
		{"no body", "PUT", "/cache/k", ``, nil, 400, []string{"empty"}},
		{"null body", "PUT", "/cache/k", `null`, nil, 400, []string{"no value"}},
		{"no object", "PUT", "/cache/k", `[1]`, nil, 400, nil},
		{"no JSON", "PUT", "/cache/k", `{"value": `, nil, 400, nil},
		{"two objects", "PUT", "/cache/k", `{"value": 1} {"value": 2}`, nil, 400, []string{"follows"}},
		{"a field too many", "PUT", "/cache/k", `{"value": 1, "tll": 5}`, nil, 400, []string{"tll"}},
		{"no UTF-8", "PUT", "/cache/k", "{\"value\": \"\xff\"}", nil, 400, []string{"UTF-8"}},
		{"life 0", "PUT", "/cache/k", `{"value": 1, "ttlSeconds": 0}`, nil, 400, []string{"more than 0"}},
		{"life below 0", "PUT", "/cache/k", `{"value": 1, "ttlSeconds": -1}`, nil, 400, []string{"more than 0"}},
		{"life too long", "PUT", "/cache/k", `{"value": 1, "ttlSeconds": 1e18}`, nil, 400, []string{"at most"}},
		{"life without end", "PUT", "/cache/k", `{"value": 1, "ttlSeconds": 1e999}`, nil, 400, nil},
		{"life not a number", "PUT", "/cache/k", `{"value": 1, "ttlSeconds": NaN}`, nil, 400, nil},
		{"life a word", "PUT", "/cache/k", `{"value": 1, "ttlSeconds": "5"}`, nil, 400, []string{"ttlSeconds"}},
		{"raw life NaN", "PUT", "/cache/k", `x`, []string{"Content-Type", "text/plain", "Cache-Ttl", "NaN"}, 400, []string{"Cache-Ttl"}},
		{"raw life below 0", "PUT", "/cache/k", `x`, []string{"Content-Type", "text/plain", "Cache-Ttl", "-5"}, 400, []string{"more than 0"}},
		{"raw life endless", "PUT", "/cache/k", `x`, []string{"Content-Type", "text/plain", "Cache-Ttl", "Inf"}, 400, []string{"at most"}},
		{"raw life a word", "PUT", "/cache/k", `x`, []string{"Content-Type", "text/plain", "Cache-Ttl", "soon"}, 400, []string{"soon"}},
		{"too large", "PUT", "/cache/k", `{"value": "` + strings.Repeat("x", 1000) + `"}`, nil, 413, []string{"1000"}},
		{"raw too large", "PUT", "/cache/k", strings.Repeat("x", 1001), []string{"Content-Type", "text/plain"}, 413, []string{"1000"}},
		{"a form", "PUT", "/cache/k", `x=1`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, []string{"application/json"}},
		{"no media type", "PUT", "/cache/k", `x`, []string{"Content-Type", "so-so; ="}, 400, []string{"Content-Type"}},
		{"a condition", "PUT", "/cache/k", `{"value": 1}`, []string{"If-None-Match", "*"}, 501, []string{"If-None-Match"}},
		{"compressed", "PUT", "/cache/k", `x`, []string{"Content-Encoding", "gzip"}, 501, []string{"Content-Encoding"}},
		{"fill that is none", "PUT", "/cache/k", `{"value": 1}`, []string{"Cache-Fill", "!"}, 400, []string{"Cache-Fill"}},
		{"unknown path", "GET", "/cach", ``, nil, 404, []string{"/cache/KEY"}},
		{"POST a key", "POST", "/cache/k", `{"value": 1}`, nil, 405, []string{"POST"}},
		{"GET mget", "GET", "/mget", ``, nil, 405, []string{"POST"}},
		{"DELETE the dashboard", "DELETE", "/", ``, nil, 405, nil},
		{"a method that is part of another", "GE", "/health", ``, nil, 405, nil},
		{"mget without keys", "POST", "/mget", `{}`, nil, 400, []string{"keys"}},
		{"mget of a word", "POST", "/mget", `{"keys": "a"}`, nil, 400, []string{"keys"}},
		{"mget of numbers", "POST", "/mget", `{"keys": [1]}`, nil, 400, nil},
		{"mget of an empty key", "POST", "/mget", `{"keys": [""]}`, nil, 400, []string{"empty"}},
		{"mget of too many", "POST", "/mget", `{"keys": ["k"` + strings.Repeat(`,""`, 256) + `]}`, nil, 413, []string{"257", "256"}},
		{"from another site", "PUT", "/cache/k", `{"value": 1}`, []string{"Sec-Fetch-Site", "cross-site"}, 403, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := s.ask(t, tc.method, tc.path, tc.body, tc.header...).wantError(t, tc.status, tc.words...)
			if tc.status == 405 && got.header.Get("Allow") == "" {
				t.Error("no Allow header")
			}
		})
	}
	s.ask(t, "GET", "/cache/k", "").wantError(t, 404)
	s.ask(t, "PUT", "/cache/k", `{"value": 1}`).want(t, 201)
}

// TestChunkedTooLarge: a body that does not say its length is cut off.
func TestChunkedTooLarge(t *testing.T) {
	s := open(t, nil)
	client := dial(t, s)
	client.send("PUT /cache/k HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := "10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n"
	for range 17 {
		client.send(chunk)
	}
	if line := client.line(); !strings.Contains(line, " 413 ") {
		t.Errorf("got %q, want 413", line)
	}
}

func TestETag(t *testing.T) {
	s := open(t, nil)
	put := s.ask(t, "PUT", "/cache/k", `{"value": [1, 2]}`).want(t, 201)
	tag := s.ask(t, "GET", "/cache/k", "").want(t, 200).header.Get("ETag")
	if tag == "" || put.header.Get("ETag") != tag {
		t.Errorf("PUT gave %q, GET %q", put.header.Get("ETag"), tag)
	}
	for _, list := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
		got := s.ask(t, "GET", "/cache/k", "", "If-None-Match", list).want(t, 304, "")
		if got.header.Get("ETag") != tag || got.header.Get("Cache-Ttl") == "" {
			t.Errorf("%s: got header %v", list, got.header)
		}
	}
	s.ask(t, "GET", "/cache/k", "", "If-None-Match", `"x"`).want(t, 200)
	s.ask(t, "PUT", "/cache/k", `{"value": [1,  2]}`).want(t, 201)
	s.ask(t, "GET", "/cache/k", "", "If-None-Match", tag).want(t, 304)
	s.ask(t, "PUT", "/cache/k", `{"value": [1, 3]}`).want(t, 201)
	s.ask(t, "GET", "/cache/k", "", "If-None-Match", tag).want(t, 200)
	s.ask(t, "PUT", "/cache/k", `[1,3]`, "Content-Type", "text/json").want(t, 201)
	if other := s.ask(t, "GET", "/cache/k", "").header.Get("ETag"); other == tag {
		t.Error("another type has the same tag")
	}
}

func TestCacheFill(t *testing.T) {
	s := open(t, nil)
	lease := func() string {
		t.Helper()
		fill := s.ask(t, "GET", "/cache/k", "").wantError(t, 404).header.Get("Cache-Fill")
		if fill == "" {
			t.Fatal("no Cache-Fill")
		}
		return fill
	}
	stale := lease()
	s.ask(t, "PUT", "/cache/k", `{"value": "new"}`).want(t, 201)
	s.ask(t, "PUT", "/cache/k", `{"value": "old"}`, "Cache-Fill", stale).wantError(t, 412, "moved on")
	s.ask(t, "GET", "/cache/k", "").want(t, 200, `{"key":"k","value":"new"}`)

	s.ask(t, "DELETE", "/cache/k", "").want(t, 200)
	s.ask(t, "PUT", "/cache/k", `{"value": "old"}`, "Cache-Fill", stale).wantError(t, 412)
	deleted := lease()
	s.ask(t, "DELETE", "/cache/k", "").want(t, 200)
	s.ask(t, "PUT", "/cache/k", `{"value": "old"}`, "Cache-Fill", deleted).wantError(t, 412)

	good := lease()
	s.ask(t, "PUT", "/cache/other", `{"value": 1}`, "Cache-Fill", good).wantError(t, 412)
	s.ask(t, "PUT", "/cache/k", `{"value": "loaded", "ttlSeconds": 60}`, "Cache-Fill", good).want(t, 201)
	s.ask(t, "GET", "/cache/k", "").want(t, 200, `{"key":"k","value":"loaded"}`)
	s.ask(t, "PUT", "/cache/k", `{"value": "again"}`, "Cache-Fill", good).wantError(t, 412)
}

func TestMget(t *testing.T) {
	s := open(t, nil)
	s.ask(t, "POST", "/mget", `{"keys": []}`).want(t, 200, `{"values":{}}`)
	for _, key := range []string{"a", "b/c", "null"} {
		value := strings.ReplaceAll(mustJSON(t, key), `"null"`, "null")
		s.ask(t, "PUT", "/cache/"+key, `{"value": `+value+`}`).want(t, 201)
	}
	s.ask(t, "POST", "/mget", `{"keys": ["a", "missing", "b/c", "null", "a"]}`).want(t, 200, `{"values":{"a":"a","b/c":"b/c","null":null}}`)
}

func TestTTLEnds(t *testing.T) {
	s := open(t, nil)
	s.ask(t, "PUT", "/cache/k", `{"value": 1, "ttlSeconds": 0.05}`).want(t, 201)
	s.ask(t, "PUT", "/cache/least", `{"value": 1, "ttlSeconds": 1e-12}`).want(t, 201)
	within(t, time.Minute, "the value is over", func() bool { return s.ask(t, "GET", "/cache/k", "").status == 404 })
	s.ask(t, "GET", "/cache/least", "").wantError(t, 404)
	s.ask(t, "PUT", "/cache/most", `{"value": 1, "ttlSeconds": 3153600000}`).want(t, 201)
	s.ask(t, "GET", "/cache/most", "").want(t, 200)
}

func TestToken(t *testing.T) {
	s := open(t, &proxy.Options{Token: "secret"})
	for _, path := range []string{"/cache/k", "/metrics", "/", "/dashboard/style.css"} {
		got := s.ask(t, "GET", path, "").wantError(t, 401, "token")
		if !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%s: got header %v", path, got.header)
		}
		for _, wrong := range []string{"Bearer ", "Bearer wrong", "Bearer secretive", "secret", "Basic !", "Basic " + base64.StdEncoding.EncodeToString([]byte("secret:wrong"))} {
			s.ask(t, "GET", path, "", "Authorization", wrong).wantError(t, 401)
		}
	}
	s.ask(t, "PUT", "/cache/k", `{"value": 1}`).wantError(t, 401)
	s.ask(t, "POST", "/cache/k", `{"value": 1}`).wantError(t, 401)
	s.ask(t, "POST", "/mget", `{"keys": ["k"]}`).wantError(t, 401)
	s.ask(t, "PUT", "/cache/k", `{"value": 1}`, "Authorization", "Bearer secret").want(t, 201)
	s.ask(t, "GET", "/cache/k", "", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("any:secret"))).want(t, 200)
	s.ask(t, "GET", "/health/live", "").want(t, 200)
}
