package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serving runs the command until the test ends, and returns its URL.
func serving(t *testing.T, args ...string) (url string, stop func() result) {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	out := &lineWriter{lines: make(chan string, 10)}
	var stderr lockedBuffer // the log is written by others than the command
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), console{in: strings.NewReader(""), out: out, err: &stderr, plain: true})
	}()
	var ended *result
	stop = func() result {
		t.Helper()
		if ended == nil {
			interrupt()
			select {
			case code := <-done:
				ended = &result{code, "", stderr.String()}
			case <-time.After(20 * time.Second):
				t.Fatal("it does not end")
			}
		}
		http.DefaultClient.CloseIdleConnections()
		return *ended
	}
	t.Cleanup(func() { stop() })
	select {
	case line := <-out.lines:
		url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving on ")
		if !ok {
			t.Fatalf("got %q", line)
		}
		return url, stop
	case code := <-done:
		done <- code
		t.Fatalf("ended with %d: %s", code, stderr.String())
	case <-time.After(20 * time.Second):
		t.Fatal("it does not serve")
	}
	return "", nil
}

// curl sends one request, and returns the answer's status and body.
func curl(t *testing.T, method, url, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(text))
}

func TestServeEmbedded(t *testing.T) {
	url, stop := serving(t)
	if status, body := curl(t, "PUT", url+"/cache/session:abc", `{"value": {"userId": 42}, "ttlSeconds": 600}`); status != 201 {
		t.Errorf("got %d %s, want 201", status, body)
	}
	if status, body := curl(t, "GET", url+"/cache/session:abc", ""); status != 200 || body != `{"key":"session:abc","value":{"userId":42}}` {
		t.Errorf("got %d %s", status, body)
	}
	if got := stop(); got.code != exitOK || !strings.Contains(got.err, "keep nothing") {
		t.Errorf("got %+v, want exit 0, and to be told that nothing is kept", got)
	}
}

// TestServeShards: as the environment, a file and the command line name them.
func TestServeShards(t *testing.T) {
	servers := harnesstest.Shards(t, harness.Options{Shards: 2, Private: true, Password: "right"})
	t.Setenv("SHARDKIT_PASSWORD", "right")
	a, b := servers.Addrs()[0], servers.Addrs()[1]
	dir := t.TempDir()
	file, token := filepath.Join(dir, "serve.json"), filepath.Join(dir, "token")
	for name, text := range map[string]string{file: `{"shards": ["a=` + a + `", "b=` + b + `"]}`, token: "secret\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	byName, stop := serving(t, "--shards", "b:"+b+",a="+a)
	if status, body := curl(t, "PUT", byName+"/cache/k", `{"value": "v"}`); status != 201 {
		t.Errorf("got %d %s, want 201", status, body)
	}
	byFile, _ := serving(t, "--config", file, "--token-file", token)
	if status, body := curl(t, "GET", byFile+"/cache/k", "", "Authorization", "Bearer secret"); status != 200 || body != `{"key":"k","value":"v"}` {
		t.Errorf("the same shards from a file: got %d %s", status, body)
	}
	if status, _ := curl(t, "GET", byFile+"/cache/k", ""); status != 401 {
		t.Errorf("without the token: got %d, want 401", status)
	}
	if got := stop(); got.code != exitOK || strings.Contains(got.err, "keep nothing") {
		t.Errorf("got %+v", got)
	}
	byRueidis, _ := serving(t, "--client", "rueidis", "--shards", "a="+a+",b="+b)
	if status, body := curl(t, "GET", byRueidis+"/cache/k", ""); status != 200 || body != `{"key":"k","value":"v"}` {
		t.Errorf("by the other client: got %d %s", status, body)
	}
	t.Setenv("SHARDKIT_SHARDS", a+","+b)
	byAddr, _ := serving(t)
	if status, body := curl(t, "GET", byAddr+"/health", ""); !strings.Contains(body, `"name":"`+a+`"`) {
		t.Errorf("shards from the environment: got %d %s, want %s as a name", status, body, a)
	}
}

// TestServesSoon: the command answers within 2 s, with no server there, or where the machine is
// slow within twenty times what it needs to start and end.
func TestServesSoon(t *testing.T) {
	bin := binary(t)
	idle := time.Now()
	if out, err := exec.CommandContext(t.Context(), bin, "slot", "k").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	limit := max(2*time.Second, 20*time.Since(idle))
	cmd := exec.CommandContext(t.Context(), bin, "serve", "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); http.DefaultClient.CloseIdleConnections() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(strings.TrimPrefix(line, "serving on "))
	for {
		if status, body := curl(t, "PUT", url+"/cache/k", `{"value": 1}`); status == 201 {
			break
		} else if time.Since(start) > limit {
			t.Fatalf("after %v: got %d %s, want 201", time.Since(start), status, body)
		}
	}
	took := time.Since(start)
	if took > limit {
		t.Errorf("it took %v, of %v", took, limit)
	}
	t.Logf("the first write was taken after %v", took.Round(time.Millisecond))
}

func TestServeBadInput(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tc := range []struct {
		name  string
		args  []string
		code  int
		words []string
	}{
		{"no address", []string{"--shards", "a"}, exitUsage, []string{`"a"`, "NAME=HOST:PORT"}},
		{"no port", []string{"--shards", "a=localhost"}, exitUsage, []string{"NAME=HOST:PORT"}},
		{"no name", []string{"--shards", "=localhost:1"}, exitUsage, []string{"NAME=HOST:PORT"}},
		{"port 0", []string{"--shards", "a=localhost:0"}, exitUsage, []string{"65535"}},
		{"port too high", []string{"--shards", "a=localhost:65536"}, exitUsage, []string{"65535"}},
		{"one name twice", []string{"--listen", "127.0.0.1:0", "--shards", "a=localhost:1,a=localhost:2"}, exitFailed, []string{"a is named twice"}},
		{"listening elsewhere", []string{"--listen", taken.Addr().String()}, exitFailed, []string{"--listen", "in use"}},
		{"no such token file", []string{"--token-file", "/does/not/exist"}, exitFailed, []string{"--token-file"}},
		{"empty token file", []string{"--token-file", os.DevNull}, exitFailed, []string{"--token-file", "empty"}},
		{"no such config", []string{"--config", "/does/not/exist"}, exitUsage, []string{"/does/not/exist"}},
		{"no such client", []string{"--client", "jedis"}, exitUsage, []string{"--client", "rueidis"}},
		{"nobody there, by a client that connects at once", []string{"--listen", "127.0.0.1:0", "--client", "rueidis", "--shards", "a=127.0.0.1:1"}, exitFailed, []string{"127.0.0.1:1", "refused"}},
		{"negative limit", []string{"--listen", "127.0.0.1:0", "--max-body=-1"}, exitFailed, []string{"MaxBody"}},
		{"bad namespace", []string{"--listen", "127.0.0.1:0", "--namespace", "a:b"}, exitFailed, []string{"namespace"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			oneError(t, shardkit(t, t.Context(), "", append([]string{"serve"}, tc.args...)...), tc.code, tc.words...)
		})
	}
}
