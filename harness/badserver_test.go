package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server")
	must(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

func TestBadServer(t *testing.T) {
	for name, tc := range map[string]struct {
		server string
		want   []string
	}{
		"ends at once":       {script(t, "#!/bin/sh\necho line one\necho 'Fatal: wrong moon phase' >&2\nexit 3\n"), []string{"shard-1", "exit status 3", "line one\nFatal: wrong moon phase"}},
		"says nothing":       {script(t, "#!/bin/sh\nexit 0\n"), []string{"exit status 0", "(nothing)"}},
		"is no program":      {script(t, "\x00\x01"), []string{"exec format error"}},
		"never answers":      {script(t, "#!/bin/sh\necho waiting\nexec sleep 60\n"), []string{"deadline exceeded", "refused", "waiting"}},
		"is not a file":      {t.TempDir(), []string{"Options.Server"}},
		"is missing":         {"/nowhere/redis-server", []string{"Options.Server", "/nowhere/redis-server"}},
		"knows no such flag": {"", []string{"no-such-flag", "exit status 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			o := harness.Options{Server: tc.server, Private: true}
			if tc.server == "" {
				startShards(t, harness.Options{Shards: 1}).Close() // skips where there is no server
				o.Args = []string{"--no-such-flag", "1"}
			}
			_, err := harness.StartShards(within(t, 500*time.Millisecond), o)
			if err == nil {
				t.Fatal("it is no error")
			}
			for _, want := range append(tc.want, "harness: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want %q in it", err, want)
				}
			}
			if errors.Is(err, harness.ErrNoServer) {
				t.Errorf("the error %q is ErrNoServer: a test would skip", err)
			}
			if dirs := workdirs(t); len(dirs) != 0 {
				t.Errorf("the folders %v are left", dirs)
			}
		})
	}
}

// A port that is taken between its choice and the server's start makes the whole start begin again, on other ports.
func TestPortTaken(t *testing.T) {
	real := startShards(t, harness.Options{Shards: 1})
	_, path, _ := strings.Cut(real.Provider(), " (")
	path = strings.TrimSuffix(path, ")")
	counter := filepath.Join(t.TempDir(), "count")
	flaky := func(failures int) string {
		os.Remove(counter)
		return script(t, fmt.Sprintf(`#!/bin/sh
echo start >>%[1]s
if [ $(wc -l <%[1]s) -le %[2]d ]; then
	set -- "$@" --port %[3]s
fi
exec %[4]s "$@"
`, counter, failures, strings.TrimPrefix(real.Addrs()[0], "127.0.0.1:"), path))
	}
	s, err := harness.StartShards(within(t, time.Minute), harness.Options{Shards: 2, Server: flaky(3)})
	must(t, err)
	if got := len(s.Addrs()); got != 2 {
		t.Errorf("got %d shards, want 2", got)
	}
	must(t, s.Close())

	_, err = harness.StartShards(within(t, time.Minute), harness.Options{Shards: 1, Server: flaky(1000)})
	if !errors.Is(err, harness.ErrAddrInUse) || !strings.Contains(err.Error(), "already in use") {
		t.Errorf("the error is %v, want ErrAddrInUse in the end", err)
	}
}

// A server may be a script that runs the real one, as for those that bring their own loader.
func TestWrapperScript(t *testing.T) {
	real := startShards(t, harness.Options{Shards: 1})
	_, path, _ := strings.Cut(real.Provider(), " (")
	wrapper := script(t, "#!/bin/sh\nexec "+strings.TrimSuffix(path, ")")+` "$@"`+"\n")
	t.Setenv("SHARDKIT_SERVER", wrapper)
	s, err := harness.StartShards(context.Background(), harness.Options{Private: true})
	must(t, err)
	defer s.Close()
	if !strings.HasSuffix(s.Provider(), "("+wrapper+")") {
		t.Errorf("Provider() = %q, want the wrapper in it", s.Provider())
	}
	running := pids(t, s.Nodes())
	must(t, s.Nodes()[0].Freeze())
	if got := s.Nodes()[0].State(within(t, time.Minute)); got != harness.Frozen {
		t.Errorf("the state is %v, want frozen: the signal is to reach the server, not the script", got)
	}
	must(t, s.Close())
	if left := aliveOf(running); len(left) > 0 {
		t.Errorf("the servers %v outlive Close", left)
	}
}

// The core is for programs too, and for modules that want to add nothing to their users' downloads.
func TestReachesOnlyTheStandardLibrary(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}} {{if eq .ImportPath \"testing\"}}testing{{end}}", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	if got := strings.Fields(string(out)); len(got) != 1 || got[0] != "github.com/shardkit/shardkit/harness" {
		t.Errorf("the package reaches %v, want itself and the standard library without testing", got)
	}
}
