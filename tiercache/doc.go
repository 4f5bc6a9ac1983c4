// Package tiercache keeps values in the process (L1) and on independent Redis shards (L2), coherent over all processes that
// share the shards.
//
//	shards := map[string]tiercache.Shard{"a": goredis.NewShard(clientA), "b": goredis.NewShard(clientB)}
//	users, err := tiercache.New[User](shards, nil)
//	if err != nil {
//		return err
//	}
//	defer users.Close()
//	u, err := users.GetOrLoad(ctx, "user:42", func(ctx context.Context) (User, error) {
//		return db.User(ctx, 42) // tiercache.ErrNotFound, if there is none
//	})
//	err = users.Delete(ctx, "user:42") // after the database was written
//
// A [Shard] is a Redis client behind four methods: backends/goredis and backends/rueidis have one each, an author of another proves
// his with package tiercachetest, and package memory is one without a server. Keys are placed by a ring, see package ring.
//
// # Guaranteed
//
// No read that begins two heartbeats (2 s by default) after a write or delete was acknowledged gives an older value, though
// notices are lost, connections cut, processes stopped, shards flushed, full, or restarted with old data. Undisturbed, other
// processes see it within a round trip. The process that wrote sees it at once, or something newer, or a miss; undisturbed or not, but for
// a shard that is restarted with data from less than two heartbeats before.
//
// A load that began before a write does not replace it, in L1 or L2, however long it takes. A write that failed by time-out takes no
// effect after its deadline. L1 does not keep a value longer than its shard does.
//
// A shard that fails is out within 1.7 s, and the next one in each key's walk stands in for it; see [Cache.Health]. What was overwritten or
// deleted meanwhile is not read when it is back, nor what stood in when it is out again. A process that does not reach a shard which others use
// may read what is up to Options.FailoverTTL (10 s) behind of its keys.
//
// A key that is read very often is read from copies on other shards too, see [Cache.HotKeys]; they are bound like L1. Shards come and go by
// [Cache.AddShard] and [Cache.RemoveShard], under load: keys of the changed shard alone move, and what was overwritten is not read.
//
// A shard that does not answer costs a caller Options.Timeout at most, and nothing once its breaker is open; loaders run all the same.
//
// # Not guaranteed
//
// It is a cache: any value may be a miss at any time. Two processes that write a key at one time end with the write that the
// shard took last; a program that writes a database first and then uses Set needs the order of the database's writes for its own, or
// Delete in place of Set.
//
// A master that dies with writes that its replica has not seen, and commands that other programs send to the cache's
// keys, are not noticed by L1 before its values expire; the latter are, with Options.Tracking. Where no process reaches both a shard and the one that stands in for it, each side reads
// its own. A write whose context was cancelled, not timed out, may still take effect until its
// deadline.
//
// # Loads
//
// A key that is missing is loaded once for all who ask in this process, and with Options.FleetWait once for all processes. A load
// belongs to nobody: each caller waits as long as his context lets him, and Options.LoadTimeout ends it. StaleFor, SoftTimeout and
// RefreshAhead spare callers what stands behind the cache when that is down, slow, or just busy; [Cache.GetOrReload] spares it the work where
// nothing changed. docs/decisions/0005-loads-that-protect.md has the reasons.
//
// # Tags
//
// [Tags] given to Set or a load let [Cache.InvalidateTag] make all values that have one of them misses: one round trip a shard, no matter how many there
// are, with the same bound as Delete. A load that is under way is not stored. [TagsOf] takes tags from the value, where only what is loaded says what it
// depends on. [Cache.DeletePrefix] walks all keys instead, for rare use.
//
// # Values
//
// A value is stored by a [Codec]: JSON, or as it is where V is string or []byte. Callers get values of their own, unless V holds nothing that can
// be changed, or Options.Shared is set: then a hit in L1 allocates nothing. null is a value; what a loader says does not exist is
// remembered as such for a shorter time. ENVELOPE.md describes what the shards hold.
//
// # Errors
//
// errors.Is finds [ErrNotFound], [ErrUnavailable], [ErrLate], [ErrTTL], [ErrTag], [ErrClosed] and what ended the context; errors.As finds a [*ShardError], a
// [*LoadError] (with a [*PanicError] within, if the loader panicked) and, from operations on many keys, a [*KeysError] with the error of each key.
//
// The protocol and what each bound rests on: docs/decisions/0004-coherence-of-a-cache.md; 0006-a-cache-through-outages.md;
// 0007-tags-and-tracking.md.
package tiercache
