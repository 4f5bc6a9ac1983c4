package proxy

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// TestTerminated: a proxy that gets SIGTERM amid writes loses none that it
// acknowledged.
func TestTerminated(t *testing.T) {
	servers := harnesstest.Shards(t, harness.Options{Shards: 3, Private: true})
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asProxy+"="+strings.Join(servers.Addrs(), ","))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + strings.TrimSpace(line)

	var mu sync.Mutex
	acknowledged := map[string]int{}
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("w%d-%d", w, i)
				status, _, _ := ask("PUT", url+"/cache/"+key, fmt.Sprintf(`{"value": %d}`, i))
				if status != 201 {
					return
				}
				mu.Lock()
				acknowledged[key] = i
				mu.Unlock()
			}
		})
	}
	within(t, 20*time.Second, "1,000 writes are acknowledged", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged) > 1000
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the proxy ended with %v", err)
	}
	wg.Wait()

	_, addr, _ := serve(t, servers)
	lost := 0
	for key, i := range acknowledged {
		if status, body, _ := ask("GET", "http://"+addr+"/cache/"+key, ""); status != 200 || !strings.Contains(body, fmt.Sprintf(`"value":%d}`, i)) {
			lost++
			t.Logf("%s: got %d %s", key, status, body)
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged writes are lost", lost, len(acknowledged))
	}
	t.Logf("%d writes were acknowledged, all are there", len(acknowledged))
}

// TestShardKilled: while a shard is away its keys are 503 with Retry-After and no
// other key fails; when it is back all are served, and no old value is given.
func TestShardKilled(t *testing.T) {
	servers := harnesstest.Shards(t, harness.Options{Shards: 3, Private: true})
	p, addr, _ := serve(t, servers)
	within(t, 10*time.Second, "all serve", func() bool { return p.Health().Status == "ok" })
	const victim = "shard-1"
	url := func(i int) string { return fmt.Sprintf("http://%s/cache/k%d", addr, i) }
	const keys = 300
	put := func(version int) {
		for i := range keys {
			status, body, header := ask("PUT", url(i), fmt.Sprintf(`{"value": %d}`, version))
			ofVictim := p.Owner(fmt.Sprintf("k%d", i)) == victim
			switch {
			case status == 201:
			case status == 503 && ofVictim && header.Get("Retry-After") != "":
			default:
				t.Errorf("key %d of %s: got %d %s", i, p.Owner(fmt.Sprintf("k%d", i)), status, body)
			}
		}
	}
	put(1)
	if err := servers.Nodes()[0].Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	within(t, 2*time.Second, "the shard is known to be out", func() bool { return p.Health().Shards[0].State == "out" })
	t.Logf("known to be out after %v", time.Since(killed).Round(time.Millisecond))
	put(2)
	if err := servers.Nodes()[0].Restart(t.Context(), harness.Empty); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	within(t, 10*time.Second, "all serve again", func() bool { return p.Health().Status == "ok" })
	t.Logf("back after %v", time.Since(back).Round(time.Millisecond))
	within(t, 10*time.Second, "its keys are served", func() bool {
		for i := range keys {
			status, body, _ := ask("GET", url(i), "")
			if strings.Contains(body, `"value":1}`) {
				t.Fatalf("key %d has its old value", i)
			}
			if status != 200 && status != 404 {
				return false
			}
		}
		return true
	})
}
