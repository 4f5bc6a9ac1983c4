// Package slotmap is the arithmetic of Redis Cluster keys: which of the 16384 slots a key belongs to, and how to name a
// key so that it lands in a given slot.
//
// Guarantee: [Slot] answers what CLUSTER KEYSLOT answers, for every byte string: binary, empty, with unbalanced, nested or
// repeated braces. [Tag] gives, for every slot, the smallest non-negative decimal integer that hashes to it, so names
// built from tags are the same in every process, version and language.
//
// Not guaranteed: anything about nodes. A slot moves from node to node while its number stays, and two slots of one node
// are as far apart as two slots of two nodes: a command whose keys lie in two slots is refused (CROSSSLOT) even when one
// node owns both. Nothing here talks to a server.
//
// A set that must be at hand beside every sharded key is kept once per slot, each copy under a name of its own:
//
//	key := "subs:{1234567890}"                // the sharded key that the caller holds
//	replica := slotmap.KeyFor("active", key)  // "active:{69234}", the copy in its slot
//	// SINTER subs:{1234567890} active:{69234} is legal: one slot, one node, one round trip.
//
//	if err := slotmap.CheckSameSlot(key, "active"); err != nil {
//		// the error lists each key with its slot
//	}
//
// # Errors
//
// [CheckSameSlot] returns a [*CrossSlotError], [ValidName] a [*NameError]; both are found by errors.As. A slot number
// beyond 16383 is a programmer's error: [Tag] and what builds on it panic. Nothing else fails.
//
// # Cost
//
// Slot takes one pass, without tables and without allocation. Only functions that return a new string allocate, once. The
// table of tags is 112 KiB of read-only data: nothing is computed at start-up, and a program that never calls Tag or
// KeyFor does not carry it.
//
// # Sources
//
// The Redis Cluster specification, https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/, sections
// "Key distribution model" (16384 slots, CRC16 modulo 16384), "Hash tags" (which part of a key is hashed) and "Appendix A:
// CRC16 reference implementation in ANSI C" (the XMODEM variant: polynomial 1021, nothing reflected, zero at the start, 31C3 for
// 123456789).
package slotmap
