package replset

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/shardkit/shardkit/slotmap"
)

var (
	//go:embed lua/footprint.lua
	footprintSource string
	footprintScript = newScript(encodingSource + footprintSource)
)

// Footprint is the memory that a set takes.
type Footprint struct {
	Members    int
	Encoding   string // of each replica, in the server's words: intset, listpack, hashtable
	PerReplica int64  // bytes of one replica with its stamp
	Masters    int64  // bytes on all masters together
	Replicas   int64  // bytes on their server replicas, as CLUSTER SLOTS counts them
	Measured   bool   // by the server; else estimated, where it refuses
}

// Total is the bytes on the whole cluster.
func (f Footprint) Total() int64 { return f.Masters + f.Replicas }

// Estimates where the server will not measure: a member of a hash table costs
// its length and this much more; so does a key.
const (
	memberOverhead = 48
	keyOverhead    = 96
)

// tableShare is what a key takes of the key space's own table, on average.
const tableShare = 12

// Footprint tells how much memory a Publish of members would take, before it
// does. The home slot's master builds a few replicas under other names, measures
// and deletes them: encodings, and with them sizes, differ by server version,
// allocator and settings.
func (s *Set) Footprint(ctx context.Context, members []string) (Footprint, error) {
	const op = "footprint"
	members = unique(members)
	f, err := s.measure(ctx, members)
	if err != nil {
		return f, slotError(op, s.replicaKey(s.home), err)
	}
	f.Masters = f.PerReplica * int64(len(s.slots.list))
	copies, err := s.serverReplicas(ctx)
	f.Replicas = f.PerReplica * copies
	return f, slotError(op, s.replicaKey(s.home), err)
}

func (s *Set) measure(ctx context.Context, members []string) (Footprint, error) {
	f := Footprint{Members: len(members), Measured: true}
	if s.noEval.isSet() {
		return estimate(members), nil
	}
	replica := s.replicaKey(s.home)
	sample := stamp{number: 1 << 50, count: len(members), digest: digestMask}
	keys := []string{replica + ":", replica + stampSuffix + ":"}
	err := s.patiently(ctx, s.opts.ReadPatience, func() error {
		v, err := s.eval(ctx, replica, footprintScript, keys, append([]string{sample.String()}, members...))
		if err != nil {
			return err
		}
		list, ok := v.([]any)
		if !ok || len(list) != 2 {
			return unexpected(v)
		}
		f.PerReplica, err = asInt(list[0])
		if err == nil && f.PerReplica < 0 {
			return errFreeing
		}
		f.PerReplica += 2 * tableShare
		f.Encoding, _ = list[1].(string)
		return err
	})
	if errors.Is(err, errFreeing) || err != nil && !transient(err) && code(err) != "" {
		return estimate(members), nil
	}
	return f, err
}

// errFreeing: memory is being freed in the background.
var errFreeing = errors.New("the server is freeing memory")

func estimate(members []string) Footprint {
	f := Footprint{Members: len(members), Encoding: "unknown", PerReplica: 2 * keyOverhead}
	for _, m := range members {
		f.PerReplica += int64(len(m)) + memberOverhead
	}
	return f
}

// serverReplicas counts copies of this set's replicas on server replicas.
func (s *Set) serverReplicas(ctx context.Context) (int64, error) {
	v, err := s.backend.Do(ctx, s.replicaKey(s.home), []string{"CLUSTER", "SLOTS"})
	if err != nil {
		return 0, err
	}
	ranges, _ := v.([]any)
	var copies int64
	for _, r := range ranges {
		r, _ := r.([]any)
		if len(r) < 4 {
			continue // no replica, or not a range: topologyOf refuses that
		}
		first, err1 := asInt(r[0])
		last, err2 := asInt(r[1])
		if err1 != nil || err2 != nil {
			return 0, unexpected(v)
		}
		for slot := max(first, 0); slot <= min(last, slotmap.Slots-1); slot++ {
			if s.slots.contains(uint16(slot)) {
				copies += int64(len(r) - 3)
			}
		}
	}
	return copies, nil
}

// TooLargeError means that a Publish was refused for the memory it would take.
// Nothing was written. Publish less, keep the set in fewer slots
// (Options.Slots), or raise Options.MaxBytes.
type TooLargeError struct {
	Footprint Footprint
	Limit     int64 // bytes
}

func (e *TooLargeError) Error() string {
	how := "about "
	if e.Footprint.Measured {
		how = ""
	}
	return fmt.Sprintf("replset: publish: %d members take %s%s on the masters (%s a replica), more than the limit of %s: raise Options.MaxBytes if the cluster has room",
		e.Footprint.Members, how, size(e.Footprint.Masters), size(e.Footprint.PerReplica), size(e.Limit))
}

// size writes bytes as MiB, KiB or B.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// guard refuses members that would take more than Options.MaxBytes.
func (s *Set) guard(ctx context.Context, members []string) error {
	limit, slots := s.opts.MaxBytes, int64(len(s.slots.list))
	if limit < 0 {
		return nil
	}
	// The server is asked only where it is not clear without: between the bare
	// text of the members and the dearest way to keep them.
	most := estimate(members)
	most.Masters = 2 * most.PerReplica * slots
	if most.Masters <= limit {
		return nil
	}
	var text int64
	for _, m := range members {
		text += int64(len(m))
	}
	if text*slots*2/5 > limit { // an integer of 20 digits takes 8 bytes, and others more of theirs
		most.Masters = most.PerReplica * slots
		return &TooLargeError{Footprint: most, Limit: limit}
	}
	f, err := s.measure(ctx, members)
	if err != nil {
		return slotError("publish", s.replicaKey(s.home), s.unowned(ctx, s.replicaKey(s.home), err))
	}
	f.Masters = f.PerReplica * slots
	if f.Masters > limit {
		return &TooLargeError{Footprint: f, Limit: limit}
	}
	return nil
}
