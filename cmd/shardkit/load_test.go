package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/proxy"
)

func TestLoad(t *testing.T) {
	url, _ := serving(t)
	file := filepath.Join(t.TempDir(), "load.json")
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"zipf at a rate", []string{"--rate", "500"}, `(?m)^\s*read .*\n\s*write `},
		{"uniform, as fast as it can, writes alone", []string{"--rate", "0", "--uniform", "--reads", "0", "--workers", "4", "--json", file}, `(?m)p99.9 +max\n\s*write `},
		{"reads alone, of one key", []string{"--reads", "1", "--keys", "1", "--size", "0"}, `(?m)p99.9 +max\n\s*read `},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := shardkit(t, t.Context(), "", append([]string{"load", "--url", url, "--duration", "500ms"}, tc.args...)...)
			if got.code != exitOK || !strings.Contains(got.out, " 0 failed") || !regexp.MustCompile(tc.want).MatchString(got.out) {
				t.Errorf("got %+v, want %s and no failure", got, tc.want)
			}
		})
	}
	if r, err := bench.ReadReport(file); err != nil || r.Results[0].Variants[0].Response.Count == 0 {
		t.Errorf("the report: got %+v, %v", r, err)
	}
	status, body := curl(t, "GET", url+"/metrics", "", "Accept", "application/json")
	var s proxy.Snapshot
	if err := json.Unmarshal([]byte(body), &s); err != nil || s.Requests.Total < 100 || s.HitRatio == 0 {
		t.Errorf("the proxy saw %d %s, %v; want the requests", status, body, err)
	}
}

// TestLoadTellsFailures: they are counted, and do not pass for answers.
func TestLoadTellsFailures(t *testing.T) {
	first := true
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !first {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		first = false
	}))
	defer s.Close()
	got := shardkit(t, t.Context(), "", "load", "--url", s.URL, "--duration", "200ms", "--reads", "1", "--rate", "0", "--workers", "1")
	if !strings.Contains(got.out, "0 a second") || !strings.Contains(got.out, "times: GET answered 503") || !strings.Contains(got.out, "INVALID") {
		t.Errorf("got %+v, want failures with their status", got)
	}
}

func TestLoadBadInput(t *testing.T) {
	for _, tc := range []struct {
		name  string
		args  []string
		code  int
		words []string
	}{
		{"no URL", []string{"--url", "localhost:7000"}, exitUsage, []string{"--url", "http://"}},
		{"rate", []string{"--rate=-1"}, exitUsage, []string{"--rate"}},
		{"workers", []string{"--workers", "0"}, exitUsage, []string{"--workers"}},
		{"duration", []string{"--duration", "0s"}, exitUsage, []string{"--duration"}},
		{"reads", []string{"--reads", "1.5"}, exitUsage, []string{"--reads"}},
		{"keys", []string{"--keys", "0"}, exitUsage, []string{"--keys"}},
		{"zipf", []string{"--zipf", "1"}, exitUsage, []string{"--zipf", "--uniform"}},
		{"size", []string{"--size=-1"}, exitUsage, []string{"--size"}},
		{"nobody there", []string{"--url", "http://127.0.0.1:1"}, exitFailed, []string{"connection refused"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			oneError(t, shardkit(t, t.Context(), "", append([]string{"load"}, tc.args...)...), tc.code, tc.words...)
		})
	}
}
