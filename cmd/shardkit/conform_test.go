package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

// sizes is how many keys each node has.
func sizes(t *testing.T, c *harness.Cluster) string {
	t.Helper()
	var list []string
	for _, n := range c.Nodes() {
		v, err := n.Do(context.Background(), "DBSIZE")
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprint(n.Name(), " ", v))
	}
	return strings.Join(list, ", ")
}

// foreign puts somebody else's keys into the cluster, with names near those of the suite.
func foreign(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for i := range 200 {
		key := fmt.Sprint([]string{"theirs:", "shardkit-conformance", "*"}[i%3], i)
		for _, n := range c.Nodes() { // the one that owns the key takes it
			_, _ = n.Do(t.Context(), "SET", key, "kept")
		}
	}
}

// clients are the first of those whose adapters are checked, or both: the cases are the same.
func clients() []string {
	if os.Getenv("SHARDKIT_LONG") == "1" {
		return []string{"goredis", "rueidis"}
	}
	return []string{"goredis"}
}

// On a cluster that somebody else runs, every case that breaks nothing passes with either client, and no key is left or lost.
func TestConformOnAClusterOfSomebodyElse(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	foreign(t, c)
	before := sizes(t, c)
	for _, client := range clients() {
		t.Run(client, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			got := shardkit(t, t.Context(), "", "conform", "--addr", c.Nodes()[0].Addr(), "--client", client, "--report", file)
			if got.code != exitOK {
				t.Fatalf("got exit %d: %s\n%s", got.code, got.err, got.out)
			}
			report, err := conformance.ReadReport(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Cases {
				want := conformance.StatusPass
				if r.Tier == conformance.Fault {
					want = conformance.StatusUnavailable
				}
				if r.Status != want {
					t.Errorf("%s: %s (%s) %s, want %s", r.ID, r.Status, r.Reason, r.Seen, want)
				}
			}
			if s := report.Servers; s.Masters != 3 || s.Version == "" || !strings.HasPrefix(s.Provider, "address: ") {
				t.Errorf("the report says of the servers %+v", s)
			}
			if v := report.Implementation.Client; v == nil || v.Path == "" {
				t.Errorf("the report says of the client %+v", v)
			}
			if now := sizes(t, c); now != before {
				t.Errorf("keys before: %s; after: %s", before, now)
			}
		})
	}
}

// On one server that somebody else runs, likewise, for the shards of a cache.
func TestConformOnAServerOfSomebodyElse(t *testing.T) {
	n := harnesstest.Shards(t, harness.Options{Shards: 1, Private: true}).Nodes()[0]
	for i := range 200 {
		key := fmt.Sprint([]string{"theirs:", "shardkit-conformance", "*"}[i%3], i)
		if _, err := n.Do(t.Context(), "SET", key, "kept"); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"conform", "--addr", n.Addr(), "--profile", "tiercache", "--client"}
	for _, client := range clients() {
		t.Run(client, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.json")
			got := shardkit(t, t.Context(), "", append(args, client, "--report", file)...)
			if got.code != exitOK {
				t.Fatalf("got exit %d: %s\n%s", got.code, got.err, got.out)
			}
			report, err := conformance.ReadReport(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Cases {
				want := conformance.StatusPass
				if r.Tier == conformance.Fault {
					want = conformance.StatusUnavailable
				}
				if r.Status != want {
					t.Errorf("%s: %s (%s) %s, want %s", r.ID, r.Status, r.Reason, r.Seen, want)
				}
			}
			if s := report.Servers; s.Shards != 1 || s.Masters != 0 || s.Version == "" {
				t.Errorf("the report says of the server %+v", s)
			}
			if v, err := n.Do(t.Context(), "DBSIZE"); v != int64(200) {
				t.Errorf("200 keys before; after: %v, %v", v, err)
			}
		})
	}
	t.Run("interrupted", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		out := &stopping{at: "TS-036", stop: func() { // TS-101 comes next
			go func() {
				for ctx.Err() == nil {
					if v, err := n.Do(ctx, "DBSIZE"); err != nil || v.(int64) > 201 {
						stop()
					}
				}
			}()
		}}
		var errs bytes.Buffer
		code := run(ctx, append(args, "goredis"), console{in: strings.NewReader(""), out: out, err: &errs, plain: true})
		if code != exitFailed || !strings.Contains(errs.String(), "interrupted") || !strings.Contains(out.String(), "TS-101  write-is-seen                skipped") {
			t.Errorf("exit %d, %s\n%s", code, errs.String(), out.String())
		}
		if v, err := n.Do(t.Context(), "DBSIZE"); v != int64(200) {
			t.Errorf("200 keys before; after: %v, %v", v, err)
		}
	})
	cluster := harnesstest.Cluster(t, harness.Options{Masters: 1, Private: true}).Nodes()[0].Addr()
	oneError(t, shardkit(t, t.Context(), "", "conform", "--addr", cluster, "--profile", "tiercache"), exitFailed, cluster, "node of a cluster")
	oneError(t, shardkit(t, t.Context(), "", "conform", "--addr", n.Addr(), "--profile", "slots,tiercache"), exitFailed, "profile slots", "tiercache")
	oneError(t, shardkit(t, t.Context(), "", "conform", "--addr", "127.0.0.1:1", "--profile", "tiercache"), exitFailed, "127.0.0.1:1")
}

// stopping calls stop when it has been told of a case.
type stopping struct {
	bytes.Buffer
	at   string
	stop func()
}

func (s *stopping) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.at) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// A run that is interrupted, between cases or in the middle of a write to all slots, leaves no key either.
func TestConformInterrupted(t *testing.T) {
	c := harnesstest.Cluster(t, harness.Options{Private: true})
	foreign(t, c)
	before := sizes(t, c)
	written := make(chan struct{})
	for _, tc := range []struct {
		name string
		when func(stop context.CancelFunc) func()
		at   string
	}{
		{"between cases", func(stop context.CancelFunc) func() { return stop }, "RS-010"},
		{"in a write to all slots", func(stop context.CancelFunc) func() {
			return func() {
				go func() { // RS-107 comes next
					defer close(written)
					n := c.Nodes()[0]
					for ctx := t.Context(); ctx.Err() == nil; {
						if v, err := n.Do(ctx, "DBSIZE"); err != nil || v.(int64) > 2000 {
							stop()
							return
						}
					}
				}()
			}
		}, "RS-106"},
	} {
		ctx, stop := context.WithCancel(t.Context())
		out := &stopping{at: tc.at, stop: tc.when(stop)}
		var errs bytes.Buffer
		code := run(ctx, []string{"conform", "--addr", c.Nodes()[0].Addr()}, console{in: strings.NewReader(""), out: out, err: &errs, plain: true})
		stop()
		if code != exitFailed || !strings.Contains(errs.String(), "interrupted") {
			t.Errorf("%s: exit %d, %s", tc.name, code, errs.String())
		}
		if now := sizes(t, c); now != before {
			t.Errorf("%s: keys before: %s; after: %s", tc.name, before, now)
		}
		if !strings.Contains(out.String(), "skipped (interrupted)") {
			t.Errorf("%s: nothing was skipped:\n%s", tc.name, out.String())
		}
	}
	<-written
}

func TestConformMistakes(t *testing.T) {
	for _, tc := range []struct {
		name  string
		args  []string
		code  int
		words []string
	}{
		{"no such client", []string{"conform", "--client", "radix"}, exitUsage, []string{"--client", "radix"}},
		{"no such profile", []string{"conform", "--profile", "sets"}, exitFailed, []string{"sets", "replset"}},
		{"no such tier", []string{"conform", "--tier", "unit"}, exitFailed, []string{"unit", "contract"}},
		{"no such case", []string{"conform", "--case", "RS-999"}, exitFailed, []string{"RS-999"}},
		{"no folder", []string{"conform", "--report", "/does/not/exist/r.json"}, exitUsage, []string{"--report", "/does/not/exist"}},
		{"no such report", []string{"conform", "--expect", "/does/not/exist.json"}, exitFailed, []string{"--expect"}},
		{"servers of both kinds", []string{"conform", "--addr", "h:1", "--server", "x"}, exitUsage, []string{"--server", "--addr"}},
		{"unreachable", []string{"conform", "--addr", "127.0.0.1:1"}, exitFailed, []string{"127.0.0.1:1"}},
	} {
		t.Run(tc.name, func(t *testing.T) { oneError(t, shardkit(t, t.Context(), "", tc.args...), tc.code, tc.words...) })
	}
}

// The cases that need no server, against a report that expects something else.
func TestConformExpect(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	args := []string{"conform", "--profile", "slots", "--tier", "contract"}
	if got := shardkit(t, t.Context(), "", append(args, "--report", file)...); got.code != exitOK {
		t.Fatalf("got %+v", got)
	}
	if got := shardkit(t, t.Context(), "", append(args, "--expect", file)...); got.code != exitOK {
		t.Errorf("the same run: got %+v", got)
	}
	got := shardkit(t, t.Context(), "", "conform", "--profile", "slots", "--tier", "property", "--expect", file)
	if got.code != exitFailed || !strings.Contains(got.err, "SL-001: was pass, is skipped") {
		t.Errorf("another run: got exit %d, %s", got.code, got.err)
	}
}

func TestConformProperty(t *testing.T) {
	args := []string{"conform", "--profile", "ring", "--case", "PR-106"}
	oneError(t, shardkit(t, t.Context(), "", args...), exitFailed, "PR-106")
	got := shardkit(t, t.Context(), "", append(args, "--property")...)
	if got.code != exitOK || !strings.Contains(got.out, "PR-106  distinct-prefixes            pass") {
		t.Errorf("got exit %d: %s\n%s", got.code, got.err, got.out)
	}
}
