package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/proxy"
)

const (
	wrkKeys        = 10_000
	wrkConnections = 64
	// One write in ten, of keys that are there.
	wrkScript = `
request = function()
  local path = "/cache/k" .. math.random(0, 9999)
  if math.random(10) > 1 then return wrk.format("GET", path) end
  return wrk.format("PUT", path, {["Content-Type"] = "application/json"}, '{"value": "some value of thirty-two bytes.."}')
end`
)

var wrkRate = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)

// wrk returns what it prints, and its requests a second.
func wrk(ctx context.Context, t *testing.T, d time.Duration, url string, args ...string) (out string, rate float64) {
	t.Helper()
	args = append([]string{"-t1", fmt.Sprint("-c", wrkConnections), fmt.Sprint("-d", int(d.Seconds())), "--timeout", "5s"}, append(args, url)...)
	text, err := exec.CommandContext(ctx, "wrk", args...).CombinedOutput()
	found := wrkRate.FindSubmatch(text)
	if err != nil || found == nil {
		t.Errorf("wrk: %v\n%s", err, text)
		return string(text), 0
	}
	rate, _ = strconv.ParseFloat(string(found[1]), 64)
	return string(text), rate
}

// statusWriter knows the status of an answer, and the text of one that is no success.
type statusWriter struct {
	http.ResponseWriter
	status int
	text   string
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status >= 400 {
		w.text += string(b)
	}
	return w.ResponseWriter.Write(b)
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// TestFullSpeed: a shard is killed half-way through 20 s of what wrk can send. Until it is known to
// be out its keys are 503 with Retry-After; there is no other failure, before or after.
func TestFullSpeed(t *testing.T) {
	if os.Getenv("SHARDKIT_LONG") != "1" {
		t.Skip("takes over a minute: SHARDKIT_LONG=1")
	}
	if _, err := exec.LookPath("wrk"); err != nil {
		const why = "no wrk: install it with `apt-get install wrk`"
		if os.Getenv("SHARDKIT_REQUIRE_LIVE") == "1" {
			t.Fatal("SHARDKIT_REQUIRE_LIVE=1, so this is not skipped: " + why)
		}
		t.Skip(why)
	}
	script := filepath.Join(t.TempDir(), "mix.lua")
	if err := os.WriteFile(script, []byte(wrkScript), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, client := range []string{"goredis", "rueidis"} {
		t.Run(client, func(t *testing.T) { fullSpeed(t, client, script) })
	}
}

func fullSpeed(t *testing.T, client, script string) {
	servers := harnesstest.Shards(t, harness.Options{Shards: 3, Private: true})
	shards, end, err := connect(client, servers.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	p, err := proxy.New(shards, &proxy.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	var mu sync.Mutex
	var failures []failed
	watched := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, began := &statusWriter{ResponseWriter: w, status: http.StatusOK}, time.Now()
		p.ServeHTTP(seen, r)
		// wrk hangs up at the end, whatever it has asked for.
		if seen.status != 200 && seen.status != 201 && seen.status != 404 && r.Context().Err() == nil {
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, failed{began, p.Owner(strings.TrimPrefix(r.URL.Path, "/cache/")), seen.status, w.Header().Get("Retry-After"), seen.text})
		}
	}))
	t.Cleanup(watched.Close)
	t.Cleanup(watched.Client().CloseIdleConnections)
	within(t, 10*time.Second, "all serve", func() bool { return p.Health().Status == "ok" })
	for i := range wrkKeys {
		if status, body, _ := askBy(watched.Client(), "PUT", watched.URL+fmt.Sprint("/cache/k", i), `{"value": 1}`); status != 201 {
			t.Fatalf("got %d %s", status, body)
		}
	}

	const length = 20 * time.Second
	var killed, out time.Time
	var outErr error
	var wg sync.WaitGroup
	wg.Go(func() {
		<-time.After(length / 2)
		killed = time.Now()
		outErr = servers.Nodes()[0].Kill()
		for p.Health().Shards[0].State != "out" && time.Since(killed) < 10*time.Second {
			time.Sleep(5 * time.Millisecond)
		}
		out = time.Now()
	})
	said, throughput := wrk(t.Context(), t, length, watched.URL, "-s", script)
	wg.Wait()
	if outErr != nil || out.Sub(killed) > 10*time.Second {
		t.Fatalf("the killed shard was not out after %v: %v", out.Sub(killed), outErr)
	}
	if strings.Contains(said, "Socket errors") {
		t.Errorf("connections failed:\n%s", said)
	}
	mu.Lock()
	defer mu.Unlock()
	slow := 0 // answers for want of one of a shard that lives: the machine is busy with other things
	for i, f := range failures {
		// Requests that were under way when it was found out fail by their own time-out.
		window := !f.began.Before(killed.Add(-time.Second)) && !f.began.After(out.Add(time.Second))
		switch {
		case f.status != 503 || f.retryAfter == "":
		case f.shard == "shard-1" && window:
			continue
		case strings.Contains(f.body, "deadline exceeded") && !strings.Contains(f.body, "shard-1"):
			slow++
			continue
		}
		t.Errorf("%v after the kill, of %s: got %d %s, Retry-After %q", f.began.Sub(killed).Round(time.Millisecond), f.shard, f.status, f.body, f.retryAfter)
		if i > 20 {
			break
		}
	}
	if most := liveMayFail(int64(throughput * length.Seconds())); int64(slow) > most {
		t.Errorf("%d answers were 503 as a shard that lives was slow, want %d at most", slow, most)
	}

	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"key":"k","value":1}`)) }))
	t.Cleanup(bare.Close)
	_, handler := wrk(t.Context(), t, 5*time.Second, bare.URL, "-s", script)
	direct := redis.NewClient(&redis.Options{Addr: servers.Addrs()[1], PoolSize: wrkConnections})
	defer direct.Close()
	server := rate(t, wrkConnections, func() error { return direct.Set(t.Context(), "k", 1, time.Minute).Err() })
	t.Logf("%.0f requests a second; out after %v, %d answers 503 until then, %d as another shard was slow; beside it, a bare net/http handler %.0f, SET by go-redis %.0f",
		throughput, out.Sub(killed).Round(time.Millisecond), len(failures)-slow, slow, handler, server)
}
