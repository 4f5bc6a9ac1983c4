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
	within(t, time.Minute, "1,000 writes are acknowledged", func() bool {
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

	_, addr, _ := serve(t, "goredis", servers)
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
