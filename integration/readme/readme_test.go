// Package readme runs the code of the repository's README on real servers.
package readme

import (
	"os"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestMain(m *testing.M) { os.Exit(harnesstest.Main(m)) }

func TestCodeIsTheReadmes(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("blocks_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```go\n")[1:]
	if len(blocks) != 2 {
		t.Errorf("README.md holds %d blocks of Go code, want one for each of the two jobs", len(blocks))
	}
	for _, block := range blocks {
		code, _, _ := strings.Cut(block, "```")
		code = "\t\t" + strings.ReplaceAll(strings.TrimSuffix(code, "\n"), "\n", "\n\t\t") + "\n"
		code = strings.ReplaceAll(code, "\n\t\t\n", "\n\n")
		if !strings.Contains(string(source), code) {
			t.Errorf("not in blocks_test.go:\n%s", code)
		}
	}
}

func TestReplicatedSet(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()
	if err := client.SAdd(t.Context(), "subs:{42}", "zoe", "yan").Err(); err != nil {
		t.Fatal(err)
	}
	got, err := replicatedSet(t.Context(), c.Addrs())
	if want := "[zoe] 1 [yan]"; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	stored, err := client.SMembers(t.Context(), "out:{42}").Result()
	if err != nil || len(stored) != 1 || stored[0] != "zoe" {
		t.Errorf("out:{42} holds %v, %v, want zoe", stored, err)
	}
}

func TestCache(t *testing.T) {
	shards := harnesstest.Shards(t, harness.Options{Private: true})
	addrs := map[string]string{}
	for i, addr := range shards.Addrs() {
		addrs[[]string{"cache-1", "cache-2", "cache-3"}[i]] = addr
	}
	db := &database{users: map[string]User{"42": {"Augusta"}}}
	for _, want := range []string{"Augusta", "Ada"} { // a new process each time; the second one loads what the first deleted
		got, err := cache(t.Context(), addrs, db)
		if err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	if db.reads != 2 {
		t.Errorf("the database was read %d times, want 2", db.reads)
	}
}
