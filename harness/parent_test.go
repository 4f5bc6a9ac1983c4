package harness_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

// helper is what this test binary does as a program that starts servers and is then killed. It prints their pids and waits.
func helper(role string) {
	var nodes []*harness.Node
	var err error
	switch role {
	case "cluster":
		var c *harness.Cluster
		if c, err = harness.StartCluster(context.Background(), harness.Options{Private: true}); err == nil {
			nodes = c.Nodes()
		}
	case "shards":
		var s *harness.Shards
		if s, err = harness.StartShards(context.Background(), harness.Options{Private: true}); err == nil {
			nodes = s.Nodes()
		}
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	for _, n := range nodes {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		info, _ := n.Do(ctx, "INFO", "server")
		cancel()
		text, _ := info.(string)
		for line := range strings.Lines(text) {
			if pid, ok := strings.CutPrefix(line, "process_id:"); ok {
				fmt.Println(strings.TrimSpace(pid))
			}
		}
	}
	if role == "shards" {
		nodes[0].Freeze() // a frozen server has to go as well
	}
	fmt.Println("ready")
	select {}
}

// startHelper runs the helper in a temporary folder of its own, which this test then shares, and returns the pids of its servers.
func startHelper(t *testing.T, role string) (*exec.Cmd, []int) {
	t.Helper()
	startShards(t, harness.Options{Shards: 1}) // skips where there is no server
	t.Setenv("TMPDIR", t.TempDir())
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SHARDKIT_HARNESS_HELPER="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			return cmd, pids
		}
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("the helper says %q", lines.Text())
		}
		pids = append(pids, pid)
	}
	t.Fatal("the helper ended before it was ready")
	return nil, nil
}

func TestServersDieWithTheirParent(t *testing.T) {
	for _, role := range []string{"cluster", "shards"} {
		t.Run(role, func(t *testing.T) {
			cmd, running := startHelper(t, role)
			if len(running) != 3 || len(aliveOf(running)) != 3 {
				t.Fatalf("of the servers %v %v are alive, want 3 of 3", running, aliveOf(running))
			}
			must(t, cmd.Process.Signal(syscall.SIGKILL))
			start := time.Now()
			eventually(t, time.Minute, func() string {
				if left := aliveOf(running); len(left) > 0 {
					return fmt.Sprintf("the servers %v outlive their parent", left)
				}
				return ""
			})
			t.Logf("%d servers gone %v after SIGKILL", len(running), time.Since(start).Round(100*time.Microsecond))
		})
	}
}

func TestFoldersOfTheDeadAreSwept(t *testing.T) {
	cmd, _ := startHelper(t, "shards")
	theirs := workdirs(t)
	if len(theirs) != 1 {
		t.Fatalf("the helper has the folders %v, want one", theirs)
	}
	// A folder that is not marked is not ours to delete, whatever its name.
	stranger, err := os.MkdirTemp("", "shardkit-harness-")
	must(t, err)

	s := startShards(t, harness.Options{Shards: 1})
	if _, err := os.Stat(theirs[0]); err != nil {
		t.Fatalf("the folder of a living program is gone: %v", err)
	}
	must(t, s.Close())

	must(t, cmd.Process.Signal(syscall.SIGKILL))
	cmd.Wait()
	s = startShards(t, harness.Options{Shards: 1})
	if _, err := os.Stat(theirs[0]); !os.IsNotExist(err) {
		t.Errorf("the folder of a killed program is still there (%v)", err)
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Errorf("a folder without a mark is gone: %v", err)
	}
	must(t, s.Close())
}
