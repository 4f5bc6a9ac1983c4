package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestMain(m *testing.M) { os.Exit(harnesstest.Main(m)) }

// Who joins and stays is seen beside a sharded set within some ticks; who left is not.
func TestPresence(t *testing.T) {
	cluster := harnesstest.SharedCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer client.Close()
	if err := client.SAdd(t.Context(), "subs:{42}", "ann", "ben", "cem").Err(); err != nil {
		t.Fatal(err)
	}
	in, typed := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(t.Context(), cluster.Addrs(), in, out)
		out.Close()
	}()
	ask := func(line string) string {
		io.WriteString(typed, line+"\n")
		answer := make([]byte, 100)
		n, err := answers.Read(answer)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return strings.TrimSpace(string(answer[:n]))
	}
	io.WriteString(typed, "join ann\njoin ben\njoin dan\nleave ben\njoin cem\n")
	deadline := time.Now().Add(20 * time.Second)
	for ask("who subs:{42}") != "ann cem" {
		if time.Now().After(deadline) {
			t.Fatal("ann and cem have been online for 20 s, and are not seen")
		}
	}
	io.WriteString(typed, "leave ann\n")
	typed.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	// The end wrote what was collected: no tick was due.
	if got, err := client.SMembers(t.Context(), "online:{42}").Result(); err != nil || strings.Contains(strings.Join(got, " "), "ann") || len(got) != 2 {
		t.Errorf("after the end cem and dan are online, but the replica of subs:{42} says %v, %v", got, err)
	}
}
