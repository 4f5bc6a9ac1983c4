package replset

import (
	"context"
	"fmt"

	"github.com/shardkit/shardkit/slotmap"
)

// topology says which slots share a master. It is a hint, to build pipelines
// with: a wrong one costs a redirect, never a wrong answer.
type topology struct {
	nodes  map[string][]uint16 // master's address -> those of the wanted slots that it owns
	orphan []uint16            // wanted slots that no master owns
}

// topologyOf asks the cluster who owns the slots. The master of any slot can
// answer; the next is asked when one cannot.
func (s *Set) topologyOf(ctx context.Context, slots []uint16) (topology, error) {
	var err error
	for _, ask := range []uint16{s.home, s.home + slotmap.Slots/3, s.home + 2*(slotmap.Slots/3)} {
		var v any
		v, err = s.backend.Do(ctx, s.replicaKey(ask%slotmap.Slots), []string{"CLUSTER", "SLOTS"})
		if err == nil {
			return parseTopology(v, slots)
		}
		if ctx.Err() != nil || code(err) != "" && !transient(err) {
			break
		}
	}
	return topology{}, err
}

// unowned adds ErrNoOwner to the error of a command near key where no master
// serves the slot. A server says so itself; some clients know it from their map,
// and say it in their own words.
func (s *Set) unowned(ctx context.Context, key string, err error) error {
	if err == nil || code(err) != "" || !transient(err) || ctx.Err() != nil {
		return err
	}
	topo, unknown := s.topologyOf(ctx, []uint16{slotmap.Slot(key)})
	if unknown == nil && len(topo.orphan) > 0 {
		return join(ErrNoOwner, err)
	}
	return err
}

// parseTopology reads the reply of CLUSTER SLOTS: a list of
// {first slot, last slot, {host, port, ...} of the master, ...}.
func parseTopology(v any, slots []uint16) (topology, error) {
	ranges, ok := v.([]any)
	if !ok {
		return topology{}, unexpected(v)
	}
	var owner [slotmap.Slots]string
	for _, r := range ranges {
		r, _ := r.([]any)
		if len(r) < 3 {
			return topology{}, unexpected(v)
		}
		first, err1 := asInt(r[0])
		last, err2 := asInt(r[1])
		master, _ := r[2].([]any)
		if err1 != nil || err2 != nil || len(master) < 2 || first < 0 || first > last || last >= slotmap.Slots {
			return topology{}, unexpected(v)
		}
		name := fmt.Sprint(master[0], ":", master[1])
		for slot := first; slot <= last; slot++ {
			owner[slot] = name
		}
	}
	t := topology{nodes: map[string][]uint16{}}
	for _, slot := range slots {
		if name := owner[slot]; name == "" {
			t.orphan = append(t.orphan, slot)
		} else {
			t.nodes[name] = append(t.nodes[name], slot)
		}
	}
	return t, nil
}
