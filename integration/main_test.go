package integration

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

func TestMain(m *testing.M) {
	code := harnesstest.Main(m)
	if c := faults.cluster; c != nil {
		if err := c.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// faults is the cluster of the tests that break something: three masters with a
// replica each, which serve their slots also when others are not covered.
var faults struct {
	once    sync.Once
	cluster *harness.Cluster
	err     error
}

func faultCluster(t *testing.T) *harness.Cluster {
	t.Helper()
	faults.once.Do(func() {
		faults.cluster, faults.err = harness.StartCluster(context.Background(), harness.Options{
			Replicas: 1, Private: true, Args: []string{"--cluster-require-full-coverage", "no"},
		})
	})
	if faults.err != nil {
		harnesstest.Skip(t, faults.err)
	}
	c := faults.cluster
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("servers: %s\n%s", c.Provider(), c.Timeline())
		}
	})
	return c
}

// name is a set's name of this test's own.
func name(t *testing.T) string { return strings.NewReplacer("{", "", "}", "").Replace(t.Name()) }

// newSet is a set of this test's own.
func newSet(t *testing.T, b replset.Backend, opts replset.Options) *replset.Set {
	t.Helper()
	s, err := replset.New(b, name(t), &opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// some are slots over all masters: for tests that need not write all 16384.
func some(n int) []uint16 {
	slots := make([]uint16, n)
	for i := range slots {
		slots[i] = uint16(i * slotmap.Slots / n)
	}
	return slots
}

var all = func() []uint16 {
	slots := make([]uint16, slotmap.Slots)
	for i := range slots {
		slots[i] = uint16(i)
	}
	return slots
}()

func publish(t *testing.T, s *replset.Set, members ...string) {
	t.Helper()
	if err := s.Publish(t.Context(), members); err != nil {
		t.Fatal(err)
	}
}

// do runs one command beside the set, as another client would.
func do(t *testing.T, b replset.Backend, cmd ...string) any {
	t.Helper()
	v, err := b.Do(context.Background(), cmd[1], cmd)
	if err != nil {
		t.Fatalf("%q: %v", cmd, err)
	}
	return v
}

// tell runs one command on every node.
func tell(t *testing.T, nodes []*harness.Node, cmd ...string) {
	t.Helper()
	for _, n := range nodes {
		if _, err := n.Do(context.Background(), cmd...); err != nil {
			t.Fatalf("%s: %q: %v", n, cmd, err)
		}
	}
}

// elsewhere is a key whose slot another master owns, where the masters share the
// slots evenly.
func elsewhere(key string) string {
	return slotmap.KeyForSlot("elsewhere", uint16((int(slotmap.Slot(key))+slotmap.Slots/2)%slotmap.Slots))
}

// sorted is a list of members fit to compare.
func sorted(members []string) string {
	members = slices.Clone(members)
	slices.Sort(members)
	return fmt.Sprintf("%q", members)
}

func within(t *testing.T, d time.Duration, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(d); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", d, what)
		}
	}
}
