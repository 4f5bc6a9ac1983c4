package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/tiercache/soak"
)

// With asCommand this test's binary is the command.
const asCommand = "SHARDKIT_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	soak.Main()
	// rueidis, whose client is closed, may yet wait for a second before it asks for the topology again.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

// result is what a command left behind.
type result struct {
	code     int
	out, err string
}

func shardkit(t *testing.T, ctx context.Context, stdin string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := run(ctx, args, console{in: strings.NewReader(stdin), out: &out, err: &err, plain: true})
	return result{code, out.String(), err.String()}
}

func TestSlotJSON(t *testing.T) {
	got := shardkit(t, t.Context(), "", "slot", "--json", "a{}b}c", "")
	want := `{"key":"a{}b}c","hashTag":"a{}b}c","slot":2041,"tag":"42703"}
{"key":"","hashTag":"","slot":0,"tag":"3560"}
`
	if got.code != exitOK || got.out != want || got.err != "" {
		t.Errorf("got %+v, want exit 0 and\n%s", got, want)
	}
}

func TestSlotTable(t *testing.T) {
	want := `KEY     HASHED  SLOT   TAG
foo     foo     12182  43681
"a b"   "a b"   9817   14258
x{y}    y       12222  5301
""      ""      0      3560
"\x00"  "\x00"  0      3560
`
	got := shardkit(t, t.Context(), "foo\na b\nx{y}\n\n\x00\n", "slot")
	if got.code != exitOK || got.out != want {
		t.Errorf("keys from stdin: got %+v, want\n%s", got, want)
	}
	if again := shardkit(t, t.Context(), "", "slot", "foo", "a b", "x{y}", "", "\x00"); again.out != got.out {
		t.Errorf("keys from arguments: got %+v, want the same as from stdin", again)
	}
}

func TestHelpHasExamples(t *testing.T) {
	for _, args := range [][]string{{"slot", "--help"}, {"ring", "--help"}, {"serve", "--help"}, {"load", "--help"}, {"soak", "--help"}, {"demo", "set", "--help"}, {"demo", "failover", "--help"}, {"demo", "hotkeys", "--help"}, {"demo", "remap", "--help"}, {"up", "cluster", "--help"}, {"up", "shards", "--help"}} {
		got := shardkit(t, t.Context(), "", args...)
		if got.code != exitOK || !strings.Contains(got.out, "Example") {
			t.Errorf("%v: got exit %d, and no example in\n%s", args, got.code, got.out)
		}
	}
	if got := shardkit(t, t.Context(), ""); got.code != exitOK || !strings.Contains(got.out, "demo") {
		t.Errorf("no arguments: got %+v, want the help", got)
	}
}

// oneError fails unless the command printed one line on stderr that holds all
// the words, and nothing on stdout.
func oneError(t *testing.T, got result, code int, words ...string) {
	t.Helper()
	if got.code != code {
		t.Errorf("got exit %d, want %d", got.code, code)
	}
	if strings.Count(got.err, "\n") != 1 || !strings.HasPrefix(got.err, "shardkit: ") {
		t.Errorf("got on stderr %q, want one line that begins with shardkit:", got.err)
	}
	for _, w := range words {
		if !strings.Contains(got.err, w) {
			t.Errorf("got on stderr %q, want it to say %q", got.err, w)
		}
	}
	if got.out != "" {
		t.Errorf("got on stdout %q, want nothing", got.out)
	}
}

func TestBadInput(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("not a certificate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		args  []string
		code  int
		words []string
	}{
		{"unknown command", []string{"frobnicate"}, exitUsage, []string{"frobnicate", "--help"}},
		{"unknown flag", []string{"slot", "--frob", "k"}, exitUsage, []string{"--frob"}},
		{"no port", []string{"slot", "--addr", "localhost", "k"}, exitFailed, []string{"localhost", "host:port"}},
		{"port 0", []string{"slot", "--addr", "127.0.0.1:0", "k"}, exitFailed, []string{"port"}},
		{"password in the URL", []string{"slot", "--addr", "redis://u:hunter2@127.0.0.1:1", "k"}, exitFailed, []string{"SHARDKIT_PASSWORD"}},
		{"database in the URL", []string{"slot", "--addr", "redis://127.0.0.1:1/3", "k"}, exitFailed, []string{"database 3"}},
		{"no such password file", []string{"slot", "--addr", "127.0.0.1:1", "--password-file", "/does/not/exist", "k"}, exitFailed, []string{"--password-file", "no such file"}},
		{"bad CA", []string{"slot", "--addr", "127.0.0.1:1", "--ca", secret, "k"}, exitFailed, []string{"--ca", "certificate"}},
		{"unreachable", []string{"slot", "--addr", "127.0.0.1:1", "k"}, exitFailed, []string{"127.0.0.1:1", "connection refused"}},
		{"unreachable demo", []string{"demo", "--addr", "127.0.0.1:1"}, exitFailed, []string{"127.0.0.1:1", "connection refused"}},
		{"no masters", []string{"up", "cluster", "--masters", "0"}, exitFailed, []string{"masters"}},
		{"no shards", []string{"up", "shards", "--shards", "0"}, exitFailed, []string{"at least 1"}},
		{"no such server", []string{"up", "shards", "--server", "/does/not/exist"}, exitFailed, []string{"/does/not/exist"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := shardkit(t, t.Context(), "", tc.args...)
			oneError(t, got, tc.code, tc.words...)
			if strings.Contains(got.err, "hunter2") {
				t.Errorf("the error shows the password: %s", got.err)
			}
		})
	}
}

func TestServersThatCannotServe(t *testing.T) {
	t.Run("not a cluster", func(t *testing.T) {
		shards := harnesstest.Shards(t, harness.Options{Shards: 1, Private: true})
		oneError(t, shardkit(t, t.Context(), "", "slot", "--addr", shards.Addrs()[0], "k"), exitFailed, shards.Addrs()[0], "not in cluster mode")
	})
	t.Run("password", func(t *testing.T) {
		shards := harnesstest.Shards(t, harness.Options{Shards: 1, Private: true, Password: "right"})
		addr := shards.Addrs()[0]
		oneError(t, shardkit(t, t.Context(), "", "slot", "--addr", addr, "k"), exitFailed, "asks for a password", "SHARDKIT_PASSWORD")
		t.Setenv("SHARDKIT_PASSWORD", "wrong")
		oneError(t, shardkit(t, t.Context(), "", "slot", "--addr", addr, "k"), exitFailed, "refused the password")
		file := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(file, []byte("right\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		oneError(t, shardkit(t, t.Context(), "", "slot", "--addr", addr, "--password-file", file, "k"), exitFailed, "not in cluster mode")
	})
	t.Run("a slot without an owner", func(t *testing.T) {
		c := harnesstest.Cluster(t, harness.Options{Private: true})
		node, err := c.Owner(t.Context(), 42)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := node.Do(t.Context(), "CLUSTER", "DELSLOTS", "42"); err != nil {
			t.Fatal(err)
		}
		oneError(t, shardkit(t, t.Context(), "", "slot", "--addr", node.Addr(), "k"), exitFailed, "no master serves slot 42")
		oneError(t, shardkit(t, t.Context(), "", "demo", "--addr", node.Addr()), exitFailed, "no master serves slot 42")
	})
	t.Run("too old", func(t *testing.T) {
		addr := answering(t, "# Server\r\nredis_version:6.0.16\r\nredis_mode:cluster\r\n")
		oneError(t, shardkit(t, t.Context(), "", "slot", "--addr", addr, "k"), exitFailed, addr, "6.0.16", "too old", "7.0")
	})
	t.Run("silent", func(t *testing.T) {
		shards := harnesstest.Shards(t, harness.Options{Shards: 1, Private: true})
		if err := shards.Nodes()[0].Freeze(); err != nil {
			t.Fatal(err)
		}
		oneError(t, shardkit(t, t.Context(), "", "slot", "--addr", shards.Addrs()[0], "k"), exitFailed, "does not answer")
	})
}

// answering is a server that gives INFO's reply to INFO and an error to all
// else, as one too old to run beside the tests' own would.
func answering(t *testing.T, info string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			for {
				n, err := conn.Read(buf)
				if err != nil {
					break
				}
				// A command a write is all that the client's checks need.
				reply := strings.Repeat("-ERR unknown command\r\n", strings.Count("\r\n"+string(buf[:n]), "\r\n*"))
				if strings.Contains(strings.ToLower(string(buf[:n])), "\r\ninfo\r\n") {
					reply = "$" + strconv.Itoa(len(info)) + "\r\n" + info + "\r\n"
				}
				if _, err := conn.Write([]byte(reply)); err != nil {
					break
				}
			}
			conn.Close()
		}
	}()
	return l.Addr().String()
}

func TestSlotNamesTheOwner(t *testing.T) {
	c := harnesstest.Cluster(t)
	got := shardkit(t, t.Context(), "", "slot", "--json", "--addr", "redis://"+c.Addrs()[0], "foo")
	owner, err := c.Owner(t.Context(), 12182)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"node":"` + owner.Addr() + `"`; got.code != exitOK || !strings.Contains(got.out, want) {
		t.Errorf("got %+v, want %s", got, want)
	}
}

func TestUpHoldsServersUntilInterrupted(t *testing.T) {
	harnesstest.Shards(t, harness.Options{Shards: 1, Private: true}) // skips where there is no server
	for _, tc := range []struct{ kind, variable string }{{"cluster", "SHARDKIT_CLUSTER"}, {"shards", "SHARDKIT_SHARDS"}} {
		t.Run(tc.kind, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			out := &lineWriter{lines: make(chan string, 10)}
			done := make(chan int)
			var stderr bytes.Buffer
			go func() {
				done <- run(ctx, []string{"up", tc.kind}, console{in: strings.NewReader(""), out: out, err: &stderr, plain: true})
			}()
			var addrs []string
			select {
			case line := <-out.lines:
				list, ok := strings.CutPrefix(strings.TrimSpace(line), "export "+tc.variable+"=")
				if addrs = strings.Split(list, ","); !ok || len(addrs) != 3 {
					t.Fatalf("got %q, want an export of %s with three addresses", line, tc.variable)
				}
			case code := <-done:
				t.Fatalf("ended with %d: %s", code, stderr.String())
			case <-time.After(30 * time.Second):
				t.Fatal("no servers after 30 s")
			}
			for _, addr := range addrs {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					t.Fatalf("%s does not accept: %v", addr, err)
				}
				conn.Close()
			}
			interrupt()
			if code := <-done; code != exitOK {
				t.Errorf("got exit %d after the interrupt, want 0: %s", code, stderr.String())
			}
			for _, addr := range addrs {
				if conn, err := net.Dial("tcp", addr); err == nil {
					conn.Close()
					t.Errorf("%s still accepts after the end", addr)
				}
			}
		})
	}
}

type lineWriter struct{ lines chan string }

func (w *lineWriter) Write(p []byte) (int, error) { w.lines <- string(p); return len(p), nil }

func TestOutputErrorsAreReported(t *testing.T) {
	var stderr bytes.Buffer
	code := run(t.Context(), []string{"slot", "--json", "k"}, console{in: strings.NewReader(""), out: fullDisk{}, err: &stderr, plain: true})
	if code != exitFailed || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("got exit %d and %q, want 1 and the disk's error", code, stderr.String())
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }
