package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestDemo(t *testing.T) {
	harnesstest.Shards(t, harness.Options{Shards: 1, Private: true}) // skips where there is no server
	t.Setenv("TMPDIR", t.TempDir())
	got := shardkit(t, t.Context(), "", "demo")
	if got.code != exitOK || got.err != "" {
		t.Fatalf("got %+v", got)
	}
	for _, want := range []string{
		"CROSSSLOT Keys in request don't hash to the same slot",
		"16,384 of 16,384 slots",
		"SINTER subs:{1234567890} active:{69234}",
		"SINTERCARD 2 subs:{1234567890} active:{69234}",
		"SDIFF subs:{1234567890} active:{69234}",
		"SINTERSTORE out:{1234567890} subs:{1234567890} active:{69234}",
		"slot 4897 moves, live",
		"replica missing",
		"The three servers are gone",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("the output does not say %q:\n%s", want, got.out)
		}
	}
	if n := strings.Count(got.out, "[bob erin]"); n != 2 {
		t.Errorf("got the intersection %d times, want it before and after the reshard", n)
	}
	for line := range strings.Lines(got.out) {
		if strings.Contains(line, "\r") || len(line) > 101 {
			t.Errorf("a line of plain output is %d wide or has a carriage return: %q", len(line), line)
		}
	}
	// moves ... from A to B: neither may answer any more.
	for _, addr := range regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(got.out, -1) {
		if conn, err := net.Dial("tcp", addr); err == nil {
			conn.Close()
			t.Errorf("%s still accepts after the demo", addr)
		}
	}
	noFolders(t)
}

// noFolders fails if the harness left a folder in the place for temporary files.
func noFolders(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("folders left behind: %v, %v", left, err)
	}
}

func TestDemoOnAClusterOfTheUser(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	got := shardkit(t, t.Context(), "", "demo", "--addr", c.Addrs()[0])
	if got.code != exitOK {
		t.Fatalf("got %+v", got)
	}
	if strings.Contains(got.out, "reshard") {
		t.Errorf("it resharded a cluster that is not its own:\n%s", got.out)
	}
	for _, n := range c.Nodes() {
		if v, err := n.Do(t.Context(), "DBSIZE"); err != nil || v != int64(0) {
			t.Errorf("%s: %v keys left, %v; want none", n, v, err)
		}
	}
}

func TestDemoInterrupted(t *testing.T) {
	harnesstest.Shards(t, harness.Options{Shards: 1, Private: true}) // skips where there is no server
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	t.Setenv("TMPDIR", t.TempDir())
	got := shardkit(t, ctx, "", "demo")
	if got.code == exitOK && !strings.Contains(got.out, "are gone") {
		t.Errorf("got %+v", got)
	}
	if got.code != exitOK {
		if strings.Count(got.err, "\n") != 1 {
			t.Errorf("got on stderr %q, want one line", got.err)
		}
	}
	noFolders(t)
}
