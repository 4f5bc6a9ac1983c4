// Package replset keeps a set in every slot of a Redis Cluster, so that a sharded key can be compared with it where the key
// lies: SINTER subs:{1234567890} active:{69234} is legal, touches one node and takes one round trip, under every topology. With one
// set for all, the server refuses it (CROSSSLOT), also where both keys are on the same node.
//
//	active, err := replset.New(goredis.New(client), "active", nil)
//	if err != nil {
//		return err
//	}
//	if err := active.Publish(ctx, []string{"user:1", "user:2"}); err != nil { // to all slots
//		return err
//	}
//	members, err := active.Intersect(ctx, "subs:{42}")  // subs:{42} and active
//	allowed, err := blocked.Without(ctx, "subs:{42}")   // subs:{42} and not blocked
//	err = active.Add(ctx, "user:3")                     // to all slots, one step each
//
// A [Set] needs a [Backend], which is a Redis client behind three methods: backends/goredis and backends/rueidis are two, an author
// of another proves his with package replsettest, and package memory is one without a server.
//
// # Guaranteed
//
// A read is never wrong about the set: each replica changes in one step, so a reader sees what some write left and nothing
// in between; and a replica that is missing is [ErrReplicaMissing], never an empty set, so a list of what is forbidden fails
// closed. For that, each replica has a small key beside it, its stamp, which is read in the same transaction.
//
// Writes have one order. Each takes a number from the set's home slot, greater than all before it, and a replica
// refuses a lower one than its own in the step that would change it. So processes that write at once, and attempts that arrive late,
// end in one set in all slots: what the writes give when done in the order of their numbers.
//
// A write that returns nil has reached every slot, or was replaced there by a newer one. Otherwise a [*WriteError] names the slots that
// it did not reach, or the home slot refused it and no other was written.
//
// Nothing that does not carry this package's mark is overwritten or deleted ([*ForeignKeyError]; Options.Adopt).
//
// # Not guaranteed
//
// The slots do not change at one moment. While a write is under way, a tenth of a second for a small set, slots answer from
// before it or from after it.
//
// A master that dies takes with it what it had not yet sent to its server replica. Options.WaitReplicas narrows that; the next
// write, Verify and Reconcile find and repair it.
//
// Where a server refuses scripts, the order is kept by a lease, which a process that stalls for ten seconds in a certain place can break
// ([RungTx]). Probe tells which way each node allows.
//
// # What it costs
//
// A copy of the set in each slot: 16384 times its size, on all masters together. Footprint tells beforehand, and Options.MaxBytes
// refuses more than 256 MiB. It suits sets of up to some thousand members that are read far more often than written. A read costs
// what the plain command costs, within a few percent; a write goes to the nodes in steps of about a millisecond.
//
// # Errors
//
// errors.Is finds [ErrReplicaMissing], [ErrReplicaDrifted] (something else wrote to a replica), [ErrSlotMoving], [ErrNoOwner],
// [ErrNotCluster], [ErrTooOld], [ErrContended], [ErrUnderReplicated] and [ErrNoAuthority], and what ended the context. errors.As finds
// [*SlotError], [*WriteError], [*ForeignKeyError], [*TooLargeError], a *slotmap.CrossSlotError for keys of several slots, and the client's own
// error beneath. Passing errors (a failover, a slot that moves) are waited out, for Options.Patience and
// Options.ReadPatience.
//
// # Sources
//
// The Redis Cluster specification, https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/: "Hash tags", "MOVED
// Redirection", "ASK redirection", "Multi-key commands". Works with Redis 7.0 and later and Valkey 8 and later.
package replset
