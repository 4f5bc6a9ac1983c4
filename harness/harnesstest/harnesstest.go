// Package harnesstest gives tests the servers of package harness: it skips where there are none, fails where they do not
// start, closes them at the end of the test, and prints what was done to them if the test failed.
//
//	func TestFailover(t *testing.T) {
//		c := harnesstest.Cluster(t, harness.Options{Replicas: 1, Private: true})
//		...
//	}
//
// With SHARDKIT_REQUIRE_LIVE=1 in the environment a test fails where it would skip. Continuous integration sets it, so that
// a missing server cannot pass for a green run.
package harnesstest

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/shardkit/shardkit/harness"
)

// Cluster starts a cluster for the length of the test. No options mean the zero Options; more than one are a mistake
// in the test, and fail it.
func Cluster(t testing.TB, opts ...harness.Options) *harness.Cluster {
	t.Helper()
	c, err := harness.StartCluster(context.Background(), options(t, opts))
	if err != nil {
		Skip(t, err)
	}
	cleanup(t, c.Group)
	return c
}

// Shards starts independent servers for the length of the test. Options are as for Cluster.
func Shards(t testing.TB, opts ...harness.Options) *harness.Shards {
	t.Helper()
	s, err := harness.StartShards(context.Background(), options(t, opts))
	if err != nil {
		Skip(t, err)
	}
	cleanup(t, s.Group)
	return s
}

// Skip ends a test that could not have what it needs: it skips it if err says that there is no server or that
// the servers in use cannot do this (harness.ErrNoServer, harness.ErrUnsupported), and fails it for any
// other error, and always with SHARDKIT_REQUIRE_LIVE=1.
func Skip(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, harness.ErrNoServer) || errors.Is(err, harness.ErrUnsupported) {
		if os.Getenv("SHARDKIT_REQUIRE_LIVE") != "1" {
			t.Skip(err)
		}
		t.Fatalf("SHARDKIT_REQUIRE_LIVE=1, so this is not skipped: %v", err)
	}
	t.Fatal(err)
}

func options(t testing.TB, opts []harness.Options) harness.Options {
	t.Helper()
	switch len(opts) {
	case 0:
		return harness.Options{}
	case 1:
		return opts[0]
	}
	t.Fatalf("harnesstest: %d Options, want one at most", len(opts))
	panic("unreachable")
}

func cleanup(t testing.TB, g *harness.Group) {
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("servers: %s\n%s", g.Provider(), g.Timeline())
		}
	})
}
