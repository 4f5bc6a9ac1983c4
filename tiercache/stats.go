package tiercache

import (
	"math/bits"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// Stats are counts since New.
type Stats struct {
	LocalHits    uint64 // answered from L1
	ShardHits    uint64 // answered from a shard
	Inherited    uint64 // misses that were answered by the shard that had the key before the list of shards changed
	CopyHits     uint64 // those of them that were answered from a copy of a hot key's value
	Promotions   uint64 // times that copies were made for hot keys
	Misses       uint64 // the shard had no value
	Loads        uint64 // calls of a loader
	LoadErrors   uint64 // those that failed; ErrNotFound is no failure
	Fills        uint64 // loaded values that were stored on a shard
	RefusedFills uint64 // loaded values that were not: their marker was gone, the key written meanwhile
	BlindLoads   uint64 // loads without a marker, since the shard did not answer
	RefusedLocal uint64 // values that did not enter L1: a later write of the key was known
	Stale        uint64 // given past their life, since no new value could be had in time (Options.StaleFor)
	Refreshes    uint64 // loads that began ahead of a value's end (Options.RefreshAhead)
	Awaited      uint64 // values that another process loaded while this one waited (Options.FleetWait)
	Corrupt      uint64 // values on a shard that were no envelope or did not decode, taken for misses
	Voided       uint64 // values on a shard that were misses: a tag of theirs was invalidated, or its key evicted
	LocalEntries int    // now, about

	Shards []ShardStats // in the order of their names
}

// ShardStats are the counts of one shard.
type ShardStats struct {
	Name    string
	Calls   uint64 // commands sent
	Errors  uint64 // those that failed
	Refused uint64 // not sent: the breaker was open

	// Reasons for which all of the shard's values in L1 ceased to count.
	Lost   uint64 // the subscription was lost, or silent
	Gaps   uint64 // a notice did not arrive
	Epochs uint64 // the shard lost its data or came back with other data

	Synced bool // L1 takes and gives values of this shard now

	// Lag is how long the last heartbeat took to go through the subscription, behind
	// the notices that were on their way.
	Lag time.Duration

	P50, P99, Max time.Duration // of calls that were answered; to an eighth

	// Faster counts the answered calls that took less than 2^i ns, at i; Took is the
	// time of them all.
	Faster [64]uint64
	Took   time.Duration
}

// Stats returns the present counts.
func (c *Cache[V]) Stats() Stats {
	s := Stats{
		LocalHits:    c.stats.localHits.sum(),
		ShardHits:    c.stats.shardHits.Load(),
		Inherited:    c.stats.inherited.Load(),
		CopyHits:     c.stats.copyHits.Load(),
		Promotions:   c.stats.promotions.Load(),
		Misses:       c.stats.misses.Load(),
		Loads:        c.stats.loads.Load(),
		LoadErrors:   c.stats.loadErrors.Load(),
		Fills:        c.stats.fills.Load(),
		RefusedFills: c.stats.refusedFills.Load(),
		BlindLoads:   c.stats.blindLoads.Load(),
		RefusedLocal: c.stats.refusedLocal.Load(),
		Stale:        c.stats.stale.Load(),
		Refreshes:    c.stats.refreshes.Load(),
		Awaited:      c.stats.awaited.Load(),
		Corrupt:      c.stats.corrupt.Load(),
		Voided:       c.stats.voided.Load(),
	}
	if c.local != nil {
		s.LocalEntries = c.local.EstimatedSize()
	}
	for _, r := range c.remotes() {
		s.Shards = append(s.Shards, r.stats.of(r))
	}
	return s
}

type cacheStats struct {
	localHits                                                              counter
	shardHits, misses, loads, loadErrors, fills, blindLoads                atomic.Uint64
	refusedFills, refusedLocal, stale, refreshes, awaited, corrupt, voided atomic.Uint64
	copyHits, promotions, inherited                                        atomic.Uint64
}

// counter is counted from many processors at once: each addition goes to one of
// several cells.
type counter struct {
	cells [16]struct {
		n atomic.Uint64
		_ [56]byte // the rest of a cache line
	}
}

func (c *counter) add() { c.cells[rand.Uint32()%16].n.Add(1) }

func (c *counter) sum() (n uint64) {
	for i := range c.cells {
		n += c.cells[i].n.Load()
	}
	return n
}

type remoteStats struct {
	calls, errors, refused atomic.Uint64
	ended                  [endings]atomic.Uint64
	max                    atomic.Int64
	lag                    atomic.Int64
	took                   atomic.Int64 // ns
	// latency counts answered calls by the logarithm of their ns, in eighths.
	latency [64 * 8]atomic.Uint64
}

func (s *remoteStats) record(ns int64, err error) {
	s.calls.Add(1)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "NOSCRIPT") { // the script is sent, and that call counts
			s.errors.Add(1)
		}
		return
	}
	raise(&s.max, ns)
	s.took.Add(ns)
	s.latency[latencyCell(ns)].Add(1)
}

// latencyCell is the place of ns among the logarithms: its highest bit, and the
// three bits below.
func latencyCell(ns int64) int {
	n := uint64(max(ns, 8))
	top := bits.Len64(n) - 1
	return top*8 + int(n>>(top-3)&7)
}

// latencyOf is the upper end of a cell.
func latencyOf(cell int) time.Duration {
	top, part := cell/8, cell%8
	return time.Duration((8+uint64(part)+1)<<(top-3) - 1)
}

func (s *remoteStats) of(r *remote) ShardStats {
	st := ShardStats{
		Name: r.name, Calls: s.calls.Load(), Errors: s.errors.Load(), Refused: s.refused.Load(),
		Lost: s.ended[endLost].Load(), Gaps: s.ended[endGap].Load() + s.ended[endBroken].Load(), Epochs: s.ended[endEpoch].Load(),
		Synced: r.synced() != nil && now() < r.trusted.Load(),
		Max:    time.Duration(s.max.Load()),
		Lag:    time.Duration(s.lag.Load()),
		Took:   time.Duration(s.took.Load()),
	}
	var counts [64 * 8]uint64
	var total uint64
	for i := range counts {
		if i%8 == 0 {
			st.Faster[i/8] = total
		}
		counts[i] = s.latency[i].Load()
		total += counts[i]
	}
	var seen uint64
	for i, n := range counts {
		before := seen
		seen += n
		if n > 0 && before*2 < total && seen*2 >= total {
			st.P50 = latencyOf(i)
		}
		if n > 0 && before*100 < total*99 && seen*100 >= total*99 {
			st.P99 = latencyOf(i)
		}
	}
	return st
}
