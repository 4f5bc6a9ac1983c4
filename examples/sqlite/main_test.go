package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestMain(m *testing.M) { os.Exit(harnesstest.Main(m)) }

func TestCacheBeforeSQLite(t *testing.T) {
	shards := harnesstest.Shards(t, harness.Options{Shards: 2, Private: true})
	file := filepath.Join(t.TempDir(), "users.db")
	program := func(lines string) string {
		t.Helper()
		var out strings.Builder
		if err := run(t.Context(), file, shards.Addrs(), strings.NewReader(lines), &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got, want := program("get eng 42\nrename eng 42 Augusta\nget eng 42\nrename eng 42 Ada\nget eng 42\n"), "(none)\nAugusta\nAda\n"; got != want {
		t.Errorf("got %q, want %q: what was read before a change was given after it", got, want)
	}
	// Somebody changes the database and tells nobody: the name comes from a shard, and not from the database.
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `UPDATE users SET name = 'Eve' WHERE id = '42'`); err != nil {
		t.Fatal(err)
	}
	if got := program("get eng 42\n"); got != "Ada\n" {
		t.Errorf("another process got %q, want what a shard holds: Ada", got)
	}
	// A team goes with all of its users, in the cache too, and the others stay.
	got := program("rename ops 1 Bea\nget ops 1\nget eng 42\ndisband eng\nget eng 42\nget ops 1\n")
	if want := "Bea\nAda\n(none)\nBea\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// Without any shard it is slower, and works.
	for _, n := range shards.Nodes() {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if got := program("get ops 1\n"); got != "Bea\n" {
		t.Errorf("with every shard down got %q, want what the database holds: Bea", got)
	}
}
