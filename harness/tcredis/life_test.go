package tcredis_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/harness/tcredis"
)

// live skips a test that reaches Docker by itself where there is none.
func live(t *testing.T) {
	t.Helper()
	startShards(t, harness.Options{Shards: 1}).Close()
}

func TestCloseLeavesNothing(t *testing.T) {
	live(t)
	before := containers(t)
	s := startShards(t, harness.Options{})
	must(t, s.Nodes()[0].Freeze())
	must(t, s.Nodes()[1].Kill())
	if got := newer(t, before); len(got) != 4 {
		t.Errorf("3 shards are the containers %v, want 4", got)
	}
	must(t, s.Close())
	must(t, s.Close())
	for id, state := range newer(t, before) {
		t.Errorf("the container %s is left, %s", id, state)
	}
	if err := s.Nodes()[0].Restart(within(t, 5*time.Second), harness.Empty); err == nil {
		t.Error("a node was restarted after Close")
	}
}

// A program that is killed takes its servers with it, a frozen one too, and the next start clears away what is left.
func TestKilledProgram(t *testing.T) {
	live(t)
	before := containers(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"=start")
	hold, err := cmd.StdinPipe() // it lives until this is closed
	must(t, err)
	defer hold.Close()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	var addrs []string
	for lines.Scan() && lines.Text() != "ready" {
		if strings.HasPrefix(lines.Text(), "127.0.0.1:") {
			addrs = strings.Split(lines.Text(), ",")
		} else {
			t.Log(lines.Text())
		}
	}
	must(t, cmd.Process.Kill())
	killed := time.Now()
	cmd.Wait()
	if len(addrs) != 6 {
		t.Fatalf("the program has the servers %q, want 6", addrs)
	}
	for _, addr := range addrs {
		for {
			since := time.Since(killed)
			conn, err := net.DialTimeout("tcp", addr, time.Second)
			if err != nil {
				break
			}
			conn.Close()
			if since > 10*time.Second {
				t.Fatalf("%s answers 10 s after its program was killed", addr)
			}
		}
	}
	t.Logf("all ports are closed %v after the kill", time.Since(killed).Round(time.Millisecond))

	// The holder deletes itself, and the next start of whatever program the rest.
	for {
		since := time.Since(killed)
		states := map[string]int{}
		for _, state := range newer(t, before) {
			states[state]++
		}
		if states["exited"] <= 6 && (len(states) == 0 || len(states) == 1 && states["exited"] > 0) {
			break
		}
		if since > 20*time.Second {
			t.Fatalf("20 s after the kill there are containers in these states: %v, want 6 exited at most", states)
		}
	}
	startShards(t, harness.Options{Shards: 1}).Close()
	for id, state := range newer(t, before) {
		t.Errorf("the next start left the container %s, %s", id, state)
	}
}

// A start clears away nothing of a program that lives.
func TestSweepSparesTheLiving(t *testing.T) {
	a := startShards(t, harness.Options{Shards: 2})
	must(t, a.Nodes()[0].Kill())
	startShards(t, harness.Options{Shards: 1})
	must(t, a.Nodes()[0].Restart(within(t, 10*time.Second), harness.Empty))
	do(t, a.Nodes()[1], "PING")
}

func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	ctx := within(t, 30*time.Second)
	launcher, err := tcredis.Containers(tcredis.Options{}).Open(ctx, harness.Options{Log: t.Logf})
	if err != nil {
		harnesstest.Skip(t, err)
	}
	defer launcher.Close()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = launcher.Launch(ctx, []harness.Spec{{Name: "shard-1", Port: port, Flags: []string{"--port", fmt.Sprint(port)}}})
	if !errors.Is(err, harness.ErrAddrInUse) {
		t.Errorf("the error is %v, want ErrAddrInUse", err)
	}
}

func TestNoDocker(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"=no docker", "DOCKER_HOST=unix:///nowhere/docker.sock", "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	must(t, err)
	if !strings.Contains(string(out), "tcredis: no server: no Docker daemon answers") {
		t.Errorf("without Docker it says %q, want that no daemon answers", out)
	}
}

func TestNoImage(t *testing.T) {
	live(t)
	o := options(harness.Options{})
	o.Providers = []harness.Provider{tcredis.Containers(tcredis.Options{Image: "localhost:1/no/such:image"})}
	_, err := harness.StartShards(within(t, 30*time.Second), o)
	if !errors.Is(err, harness.ErrNoServer) || !strings.Contains(err.Error(), "localhost:1/no/such:image") {
		t.Errorf("the error is %v, want ErrNoServer and the image", err)
	}
}

func TestUnsupported(t *testing.T) {
	for name, o := range map[string]harness.Options{
		"a program":            {Server: "redis-server"},
		"a proxy and replicas": {Proxied: true, Replicas: 1},
	} {
		if _, err := harness.StartCluster(t.Context(), options(o)); !errors.Is(err, harness.ErrUnsupported) {
			t.Errorf("%s: the error is %v, want ErrUnsupported", name, err)
		}
	}
}
