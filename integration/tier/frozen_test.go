package tier

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

const childAddr = "TIER_TEST_CHILD"

// child is a process with a cache. It reads the key all the time, and prints each
// value that it sees change, with its own clock.
func child(addr string) {
	for _, c := range clients {
		if c.name != os.Getenv(childAddr+"_CLIENT") {
			continue
		}
		s, done, err := c.dial(addr)
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		defer done()
		cache, err := tiercache.New[int](map[string]tiercache.Shard{"s": s}, nil)
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		// Several, so that one is likely to be the first to run when the process thaws.
		for range 4 {
			go func() {
				last := -1
				for {
					before := cache.Stats().LocalHits
					v, err := cache.Get(context.Background(), "k")
					if at := time.Now().UnixMilli(); err == nil && (v != last || at%50 == 0) {
						last = v
						fmt.Println("saw", v, at, cache.Stats().LocalHits > before)
					}
				}
			}()
		}
		time.Sleep(time.Minute)
	}
}

// TestFrozenProcess: a process that was stopped for 5 s never gives what it held.
func TestFrozenProcess(t *testing.T) {
	t.Parallel()
	eachClient(t, func(t *testing.T, c client) {
		t.Parallel()
		n := servers(t, 1, harness.Options{})[0]
		a, err := tiercache.New[int](map[string]tiercache.Shard{"s": c.shard(t, n.Addr())}, nil)
		ok(t, err)
		defer a.Close()
		mustSet(t, a, "k", 1)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childAddr+"="+n.Addr(), childAddr+"_CLIENT="+c.name)
		out, err := cmd.StdoutPipe()
		ok(t, err)
		ok(t, cmd.Start())
		defer func() { cmd.Process.Signal(syscall.SIGCONT); cmd.Process.Kill(); cmd.Wait() }()
		type sight struct {
			value int
			at    int64
			local bool
		}
		sights := make(chan sight, 1<<20)
		go func() {
			defer close(sights)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				var s sight
				if _, err := fmt.Sscan(strings.TrimPrefix(lines.Text(), "saw "), &s.value, &s.at, &s.local); err == nil {
					sights <- s
				}
			}
		}()
		timeout := time.After(time.Minute)
		next := func() sight {
			select {
			case s, open := <-sights:
				if !open {
					t.Fatal("the child ended")
				}
				return s
			case <-timeout:
				t.Fatal("the child says nothing")
			}
			panic("unreachable")
		}
		for {
			if s := next(); s.value == 1 && s.local {
				break
			}
		}
		ok(t, cmd.Process.Signal(syscall.SIGSTOP))
		written := time.Now()
		mustSet(t, a, "k", 2)
		time.Sleep(5 * time.Second)
		thawed := time.Now().UnixMilli()
		ok(t, cmd.Process.Signal(syscall.SIGCONT))
		for count := 0; count < 20; {
			s := next()
			if s.at < thawed {
				continue
			}
			count++
			if s.value != 2 {
				t.Fatalf("%d ms after it thawed, and %v after the write, it gave %d", s.at-thawed, time.UnixMilli(s.at).Sub(written), s.value)
			}
		}
	})
}
