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
	if got, want := program("get 42\nrename 42 Augusta\nget 42\nrename 42 Ada\nget 42\n"), "(none)\nAugusta\nAda\n"; got != want {
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
	if got := program("get 42\n"); got != "Ada\n" {
		t.Errorf("another process got %q, want what a shard holds: Ada", got)
	}
	// Without any shard it is slower, and works.
	for _, n := range shards.Nodes() {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if got := program("get 42\n"); got != "Eve\n" {
		t.Errorf("with every shard down got %q, want what the database holds: Eve", got)
	}
}
