package replset

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
)

var (
	//go:embed lua/probe.lua
	probeSource string
	probeScript = newScript(probeSource)
)

// Rung is a way to write replicas. Writes take the best that each node allows,
// find that out as they go, and remember it for the life of the Set.
type Rung string

const (
	// RungNode: a script on the node writes many replicas a call; members travel
	// once per node. Order is checked in the step that changes a replica.
	RungNode Rung = "node script"

	// RungKey: a script writes one replica a call, with its keys declared, for
	// servers that refuse others. Order is checked in the same step; members
	// travel once per replica.
	RungKey Rung = "key script"

	// RungTx: transactions under a lease, for servers that refuse scripts. A
	// replica changes in one step, but its order is checked just before: a writer
	// that stalls in between for longer than the lease, 10 s, may put an older
	// write over a newer one. Verify finds that.
	RungTx Rung = "transaction"
)

// NodeProbe is what one master allows.
type NodeProbe struct {
	Addr    string // as CLUSTER SLOTS names it
	Slots   int    // of this set's slots, those that it owns
	Rung    Rung
	Restore bool  // copies by RESTORE, which is several times as fast for small and integer sets
	Err     error // the node did not answer; the rest is then not known
}

// Probe asks each master which rung writes can use there. It writes nothing.
// The answer is in the order of addresses.
func (s *Set) Probe(ctx context.Context) ([]NodeProbe, error) {
	topo, err := s.topologyOf(ctx, s.slots.list)
	if err != nil {
		return nil, fmt.Errorf("replset: probe: %w", explain(err))
	}
	var probes []NodeProbe
	for addr, slots := range topo.nodes {
		p := NodeProbe{Addr: addr, Slots: len(slots)}
		p.Rung, p.Restore, p.Err = s.probe(ctx, slots[0])
		if n := s.nodeAt(addr); p.Err == nil {
			if p.Rung == RungKey {
				n.keysOnly.set()
			}
			if !p.Restore {
				n.noRestore.set()
			}
		}
		probes = append(probes, p)
	}
	slices.SortFunc(probes, func(a, b NodeProbe) int { return cmp.Compare(a.Addr, b.Addr) })
	return probes, nil
}

func (s *Set) probe(ctx context.Context, slot uint16) (rung Rung, restore bool, err error) {
	replica := s.replicaKey(slot)
	v, err := s.eval(ctx, replica, probeScript, nil, []string{replica + absentSuffix})
	if err == nil {
		list, ok := v.([]any)
		if !ok || len(list) != 2 {
			return "", false, unexpected(v)
		}
		if list[0] == int64(1) {
			return RungNode, list[1] == int64(1), nil
		}
		return RungKey, false, nil
	}
	if code(err) == "" || transient(err) {
		return "", false, err
	}
	_, err = s.backend.Do(ctx, replica, script{source: "return 1"}.inFull([]string{replica + absentSuffix}, nil))
	switch {
	case err == nil:
		return RungKey, false, nil
	case scriptsRefused(err):
		s.noEval.set()
		return RungTx, false, nil
	}
	return "", false, err
}
