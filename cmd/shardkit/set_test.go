package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/slotmap"
)

// setOf returns a function that runs `shardkit set` on one cluster.
func setOf(t *testing.T, c *harness.Cluster, name string) func(stdin string, args ...string) result {
	return func(stdin string, args ...string) result {
		t.Helper()
		args = append([]string{"set", args[0], "--addr", c.Addrs()[0], "--name", name}, args[1:]...)
		return shardkit(t, t.Context(), stdin, args...)
	}
}

func wantOut(t *testing.T, got result, code int, words ...string) {
	t.Helper()
	if got.code != code {
		t.Errorf("got exit %d, want %d: %+v", got.code, code, got)
	}
	for _, w := range words {
		if !strings.Contains(got.out, w) {
			t.Errorf("got %+v, want it to print %q", got, w)
		}
	}
}

func TestSetLife(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	set := setOf(t, c, "active")

	oneError(t, set("", "show"), exitFailed, "replica missing", "publish")
	oneError(t, set("", "add", "x"), exitFailed, "replica missing", "publish")
	oneError(t, set("", "publish"), exitFailed, "--empty")
	wantOut(t, set("", "publish", "--dry-run", "a", "b"), exitOK, "would write 2 members", "not published", "Nothing was done")
	oneError(t, set("", "show"), exitFailed, "replica missing")

	wantOut(t, set("bob\nalice\nwith space\n", "publish"), exitOK, "publish active: 3 members in 16,384 slots")
	wantOut(t, set("", "add", "carol"), exitOK, "add active: 1 members in 16,384 slots")
	wantOut(t, set("", "remove", "bob"), exitOK, "remove active")
	if got := set("", "show"); got.out != "alice\ncarol\nwith space\n" {
		t.Errorf("show: got %+v", got)
	}
	if got := set("", "show", "--near", "subs:{42}", "--json"); got.out != `{"set":"active","members":["alice","carol","with space"]}`+"\n" {
		t.Errorf("show --json: got %+v", got)
	}
	wantOut(t, set("", "verify"), exitOK, "active: 16,384 replicas hold write", "3 members")
	wantOut(t, set("", "verify", "--sample", "64"), exitOK, "active: 64 replicas")
	wantOut(t, set("", "footprint", "a", "b"), exitOK, "members", "measured on the server", "all masters", "MiB")

	// Three kinds of drift, by another client.
	owner := func(slot uint16) *harness.Node {
		n, err := c.Owner(t.Context(), int(slot))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for slot, cmd := range map[uint16][]string{7: {"DEL"}, 8: {"SADD", "eve"}, 9: {"SREM", "alice"}} {
		key := slotmap.KeyForSlot("active", slot)
		if _, err := owner(slot).Do(t.Context(), append([]string{cmd[0], key}, cmd[1:]...)...); err != nil {
			t.Fatal(err)
		}
	}
	got := set("", "verify")
	wantOut(t, got, exitFailed, "missing  1         7", "extra    1         8", "content  1         9")
	if !strings.Contains(got.err, "3 of 16,384 replicas") || strings.Count(got.err, "\n") != 1 {
		t.Errorf("verify: got on stderr %q", got.err)
	}
	var v struct {
		Consistent bool
		Drifted    []struct {
			Slot int
			Kind string
		}
	}
	if got := set("", "verify", "--json"); json.Unmarshal([]byte(got.out), &v) != nil || v.Consistent || len(v.Drifted) != 3 || v.Drifted[0].Slot != 7 {
		t.Errorf("verify --json: got %+v", got)
	}
	wantOut(t, set("", "reconcile", "--dry-run"), exitOK, "missing")
	if got := set("", "verify"); got.code != exitFailed {
		t.Errorf("a dry run repaired: %+v", got)
	}
	wantOut(t, set("", "reconcile"), exitOK, "repaired 3 replicas")
	wantOut(t, set("", "verify"), exitOK, "hold write")

	file := filepath.Join(t.TempDir(), "members")
	if err := os.WriteFile(file, []byte("alice\nzoe\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantOut(t, set("", "verify", "--against", file), exitFailed, "DRIFT")
	wantOut(t, set("", "reconcile", "--against", file), exitOK)
	if got := set("", "show"); got.out != "alice\nzoe\n" {
		t.Errorf("show after reconcile --against: got %+v", got)
	}

	oneError(t, set("", "clear"), exitFailed, "--yes", "--dry-run")
	wantOut(t, set("", "clear", "--dry-run"), exitOK, "Nothing was done")
	wantOut(t, set("", "clear", "--yes"), exitOK, "clear active")
	oneError(t, set("", "show"), exitFailed, "replica missing")
	wantOut(t, set("", "publish", "--empty"), exitOK, "0 members")
	if got := set("", "show"); got.code != exitOK || got.out != "" {
		t.Errorf("show of an empty set: got %+v", got)
	}
}

func TestSetRefusals(t *testing.T) {
	c := harnesstest.Cluster(t)
	oneError(t, setOf(t, c, "a{b}")("", "publish", "x"), exitFailed, "brace")
	oneError(t, shardkit(t, t.Context(), "", "set", "publish", "--addr", c.Addrs()[0], "x"), exitUsage, "--name")
	oneError(t, shardkit(t, t.Context(), "", "set", "show", "--name", "x"), exitFailed, "--addr is missing")
	oneError(t, setOf(t, c, "x")("", "verify", "--sample=-1"), exitFailed, "sample")
	oneError(t, setOf(t, c, "x")("", "verify", "--against", "/does/not/exist"), exitFailed, "--against")
	oneError(t, setOf(t, c, "x")("", "publish", "--wait-replicas=-1", "x"), exitFailed, "negative")
	oneError(t, setOf(t, c, "x")("", "publish", "--step-time=-1ms", "x"), exitFailed, "StepTime -1ms", "negative")
	oneError(t, setOf(t, c, "x")("", "reconcile", "--step-time=-1ms"), exitFailed, "StepTime -1ms", "negative")

	var many strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&many, "member-%d\n", i)
	}
	oneError(t, setOf(t, c, "large")(many.String(), "publish"), exitFailed, "100000 members", "limit of 256 MiB", "MaxBytes")
	if got := setOf(t, c, "large")("", "show"); got.code != exitFailed {
		t.Errorf("a refused publish left something: %+v", got)
	}
}

func TestSetForeignKey(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	key := slotmap.KeyForSlot("theirs", 99)
	n, err := c.Owner(t.Context(), 99)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Do(t.Context(), "SADD", key, "precious"); err != nil {
		t.Fatal(err)
	}
	set := setOf(t, c, "theirs")
	oneError(t, set("", "publish", "x"), exitFailed, "16383 of 16384", "slot 99", "not written by replset")
	if v, err := n.Do(t.Context(), "SISMEMBER", key, "precious"); err != nil || v != int64(1) {
		t.Errorf("the foreign key was touched: %v, %v", v, err)
	}
	var r struct {
		Slots  int
		Failed []struct{ Slot int }
	}
	if got := set("", "publish", "--json", "x"); json.Unmarshal([]byte(got.out), &r) != nil || r.Slots != 16383 || len(r.Failed) != 1 || r.Failed[0].Slot != 99 {
		t.Errorf("publish --json: got %+v", got)
	}
	wantOut(t, set("", "publish", "--adopt", "x"), exitOK, "16,384 slots")
}
