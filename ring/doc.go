// Package ring places keys on nodes: which of several independent servers, Redis shards say, holds a key. Nodes may have weights,
// come, go and fail, and as few keys as possible change their place.
//
//	r, err := ring.New(ring.Nodes("shard-1", "shard-2", "shard-3"), nil)
//	...
//	r.Locate("user:42")       // the shard that holds the key
//	r.LocateN("user:42", 3)   // and the next two, for copies and failover
//	r, err = r.WithDown("shard-2") // its keys go to the next shards of their orders, until it is back
//
// # Guarantees
//
// The same nodes with the same weights and options give the same table in every process, on every architecture, in whatever
// order they are given. [Ring.Fingerprint] lets processes check that they mean the same.
//
// With a [Table], which is the default, no key moves between two nodes that stay as they are, whatever else comes, goes or
// changes its weight; with [Classic] neither. [Table.Exact] gives up to 0.4 % of the keys for an even table.
//
// A node that is down is an overlay on the table, never a change of membership: only its own keys are elsewhere, each on the
// next live node of the key's own order, and when it is back the table is what it was, bit for bit. What was down
// before leaves no trace, so processes that saw different failures agree as soon as they see the same nodes down.
//
// A [Ring] never changes, so it needs no lock. What cannot be done is an error and leaves the ring as it is; nothing panics but a
// node number out of range.
//
// # Not guaranteed
//
// Even shares. Over random names, half of all rings of 3 nodes have none more than 0.35 % above its share of the buckets, of
// 10 nodes 1.3 %, of 100 nodes 7 %; one in 50,000 exceeds 1.5 % with 3 nodes, one in 8,500 exceeds 3.5 % with 10. More
// [Table.Buckets] help, and [Table.Exact] ends it. Few keys, or few that are most of the traffic, are uneven on an even table:
// see [Ring.IndexBounded].
//
// Anything against someone who chooses keys in order to load one node: the hash has no secret.
//
// That another number of buckets, or another placement, keeps any key where it was.
//
// That a node which holds keys is told of a change: moving the data, or doing without, is the caller's.
//
// # Errors
//
// [ErrNoNodes], [ErrAllDown], and in a [*NodeError] that names the node, [ErrDuplicate], [ErrUnknown], [ErrWeight] and
// [ErrCollision]. Other errors are a programmer's: an option or an argument out of range.
//
// # Sources
//
// Thaler, Ravishankar: Using Name-Based Mappings to Increase Hit Rates, IEEE/ACM Transactions on Networking 6(1), 1998
// (rendezvous). Schindelhauer, Schomaker: Weighted Distributed Hash Tables, SPAA 2005 (weights). Karger et al.: Consistent Hashing and
// Random Trees, STOC 1997 (the circle of points). Mirrokni, Thorup, Zadimoghaddam: Consistent Hashing with Bounded Loads,
// SODA 2018 (bounded loads).
package ring
