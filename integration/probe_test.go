package integration

import (
	"testing"

	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
)

// Probe names the rung that writes then use.
func TestProbe(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	want := []replset.Rung{replset.RungNode, replset.RungKey, replset.RungKey, replset.RungTx}
	eachClient(t, c, func(t *testing.T, b replset.Backend) {
		for i, rung := range rungs {
			s := newSet(t, rung.wrap(b), replset.Options{})
			probes, err := s.Probe(t.Context())
			if err != nil || len(probes) != 3 {
				t.Fatalf("%s: got %+v, %v, want three nodes", rung.name, probes, err)
			}
			slots := 0
			for _, p := range probes {
				slots += p.Slots
				if p.Rung != want[i] || p.Restore != (i == 0) || p.Err != nil {
					t.Errorf("%s: got %+v, want %s", rung.name, p, want[i])
				}
			}
			if slots != 16384 {
				t.Errorf("%s: the nodes own %d slots", rung.name, slots)
			}
		}
	})
}

// A user without the right to RESTORE publishes all the same.
func TestRestoreRefusedByACL(t *testing.T) {
	c := harnesstest.SharedCluster(t)
	tell(t, c.Nodes(), "ACL", "SETUSER", "norestore", "on", ">secret", "~*", "&*", "+@all", "-restore")
	defer tell(t, c.Nodes(), "ACL", "DELUSER", "norestore")
	for _, client := range clients {
		t.Run(client.name, func(t *testing.T) {
			b := openAs(t, client.name, c, login{name: "norestore", password: "secret"})
			slots := some(512)
			s := newSet(t, b, replset.Options{Slots: slots})
			publish(t, s, "1", "2", "3")
			publish(t, s, "2", "3", "4")
			wantReplicas(t, b, s, slots, "2", "3", "4")
			probes, err := s.Probe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range probes {
				if p.Rung != replset.RungNode || p.Restore {
					t.Errorf("got %+v, want the node script without RESTORE", p)
				}
			}
		})
	}
}
