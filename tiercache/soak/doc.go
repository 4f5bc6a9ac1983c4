// Package soak checks what package tiercache promises while everything breaks.
//
// [Run] starts Redis shards and several processes with a cache over them, lets
// the processes write, read, delete and load at random, and meanwhile kills,
// freezes, cuts off, slows, empties, restores and fills the shards, and stops
// and kills the processes, by a schedule that a seed gives. Every operation is
// recorded with the times at which it began and ended. [Check] then judges the
// history: whether any read that began more than the bound after a write was
// known gave an older version, or any that began after the reader's own process
// had written, whether what was deleted stays deleted, whether operations ended by
// their deadlines, and whether all processes agree when all is at rest. A history is a file, and can be judged again without servers.
//
// A process of the run is this very program, started again: so [Main] comes
// first in main, and in TestMain.
//
//	func main() {
//		soak.Main()
//		report, err := soak.Run(ctx, &soak.Options{Seed: 1, Duration: time.Minute})
//		...
//	}
//
// What it rests on: versions of a key are written one after the other, each by
// the process whose turn it is, and never while an earlier write may still take
// effect, so the greater version is the later one. A source of truth, which all
// processes share, has each version before the cache hears of it. So whatever
// is loaded after a write is not older than it.
//
// Not guaranteed: that a second run of a seed does the same. The schedule and
// the draws are the same, the times at which things meet are not.
package soak
