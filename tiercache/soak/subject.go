package soak

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/tiercache"
)

// A subject is the cache that is looked at, as one process has it. What a key has
// not, and what a loader does not find, is tiercache.ErrNotFound.
type subject interface {
	Get(ctx context.Context, key string) (string, error)
	Load(ctx context.Context, key string, load func(context.Context) (string, error)) (string, error)

	// Many returns the values, and the errors of keys that were not served. load may
	// be nil.
	Many(ctx context.Context, keys []string, load func(context.Context, []string) (map[string]string, error)) (map[string]string, map[string]error)

	// Set stores the value for the given time, or for the default if that is 0.
	Set(ctx context.Context, key, value string, life time.Duration) error
	Delete(ctx context.Context, key string) error

	// Refused reports whether a write's error says that it took no effect.
	Refused(err error) bool

	// Health tells of each shard, by its name, whether it is in use.
	Health() map[string]bool

	// Owner returns what tells the name of the shard where a key is while nothing is
	// amiss, and whether the key moves to the spare shard when that is added. It is
	// asked before that.
	Owner() func(key string) (name string, moves bool)

	// Join adds the spare shard, Leave removes it. Either may be called again.
	Join(ctx context.Context) error
	Leave(ctx context.Context) error

	// Counts are how many reads copies of hot keys answered, and the shard that had a key
	// before the shards changed.
	Counts() (copied, inherited uint64)

	Close() error
}

// open returns the subject that a process uses.
func open(c *config) (subject, error) {
	if c.Subject == RingCache {
		return openRing(c)
	}
	return openTiercache(c)
}

type tiered struct {
	*tiercache.Cache[string]
	ends []func()

	spare      string // name of the spare shard
	spareShard tiercache.Shard
}

func openTiercache(c *config) (_ subject, err error) {
	t := &tiered{spare: c.Spare}
	defer func() {
		if err != nil {
			t.end()
		}
	}()
	shards := map[string]tiercache.Shard{}
	for name, addr := range c.Addrs {
		if c.Client == "goredis" || c.Client == "mixed" && c.Process%2 == 0 {
			client := redis.NewClient(&redis.Options{
				Addr: addr, DialTimeout: c.timeout(), ReadTimeout: c.timeout(), WriteTimeout: c.timeout(), DialerRetries: 1,
			})
			t.ends = append(t.ends, func() { client.Close() })
			shards[name] = goredis.NewShard(client)
			continue
		}
		client, err := dialRueidis(addr, c.timeout())
		if err != nil {
			return nil, err
		}
		t.ends = append(t.ends, client.Close)
		if shards[name], err = rueidisbackend.NewShard(client); err != nil {
			return nil, err
		}
	}
	if t.spareShard = shards[c.Spare]; !c.Joined {
		delete(shards, c.Spare)
	}
	t.Cache, err = tiercache.New[string](shards, &tiercache.Options{
		Namespace: "soak", Heartbeat: c.Heartbeat, Timeout: c.timeout(), FailoverTTL: failoverBeats * c.Heartbeat,
		LocalBytes: localBytes(c.Process), HotReads: hotReads,
	})
	return t, err
}

// dialRueidis waits for the server: rueidis makes no client of one that is away.
func dialRueidis(addr string, timeout time.Duration) (rueidis.Client, error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, ConnWriteTimeout: timeout})
		if err == nil || time.Since(began) > time.Minute {
			return client, err
		}
	}
}

func (t *tiered) Load(ctx context.Context, key string, load func(context.Context) (string, error)) (string, error) {
	return t.GetOrLoad(ctx, key, load)
}

func (t *tiered) Many(ctx context.Context, keys []string, load func(context.Context, []string) (map[string]string, error)) (map[string]string, map[string]error) {
	values, err := t.GetMany(ctx, keys, load)
	var failed *tiercache.KeysError
	if errors.As(err, &failed) {
		return values, failed.Errs
	}
	return values, nil
}

func (t *tiered) Set(ctx context.Context, key, value string, life time.Duration) error {
	if life > 0 {
		return t.Cache.Set(ctx, key, value, tiercache.TTL(life))
	}
	return t.Cache.Set(ctx, key, value)
}

func (t *tiered) Refused(err error) bool {
	return errors.Is(err, tiercache.ErrLate) || errors.Is(err, tiercache.ErrUnavailable)
}

func (t *tiered) Health() map[string]bool {
	health := map[string]bool{}
	for _, h := range t.Cache.Health() {
		health[h.Shard] = h.State == tiercache.ShardServing
	}
	return health
}

func (t *tiered) Owner() func(key string) (name string, moves bool) {
	without := t.Ring()
	with, err := without.With(ring.Node{Name: t.spare, Weight: 1})
	return func(key string) (string, bool) {
		return without.Locate(key), err == nil && with.Locate(key) == t.spare
	}
}

func (t *tiered) Join(ctx context.Context) error  { return t.AddShard(ctx, t.spare, t.spareShard) }
func (t *tiered) Leave(ctx context.Context) error { return t.RemoveShard(ctx, t.spare) }

func (t *tiered) Counts() (copied, inherited uint64) {
	s := t.Stats()
	return s.CopyHits, s.Inherited
}

func (t *tiered) Close() error {
	err := t.Cache.Close()
	t.end()
	return err
}

func (t *tiered) end() {
	for _, end := range slices.Backward(t.ends) {
		end()
	}
}

// ringed is what people use today: go-redis's Ring, and a local cache before it.
// Nothing tells the processes of writes, so what is local lives as long as the
// bound allows.
type ringed struct {
	ring *redis.Ring
	*config
	local *otter.Cache[string, string]
}

func openRing(c *config) (subject, error) {
	local, err := otter.New(&otter.Options[string, string]{MaximumSize: 10_000, ExpiryCalculator: otter.ExpiryWriting[string, string](2 * c.Heartbeat)})
	if err != nil {
		return nil, err
	}
	return &ringed{config: c, local: local, ring: redis.NewRing(&redis.RingOptions{
		Addrs: c.members(c.Joined), HeartbeatFrequency: c.Heartbeat / 2,
		// With the defaults a frozen shard leaves the ring after 15 s.
		DialTimeout: c.timeout() / 2, ReadTimeout: c.timeout() / 2, WriteTimeout: c.timeout() / 2,
	})}, nil
}

const ringLife = 5 * time.Minute

func (r *ringed) Get(ctx context.Context, key string) (string, error) {
	if value, found := r.local.GetIfPresent(key); found {
		return value, nil
	}
	value, err := r.ring.Get(ctx, key).Result()
	switch {
	case err == nil:
		r.local.Set(key, value)
	case errors.Is(err, redis.Nil):
		err = tiercache.ErrNotFound
	}
	return value, err
}

func (r *ringed) Load(ctx context.Context, key string, load func(context.Context) (string, error)) (string, error) {
	value, err := r.Get(ctx, key)
	if err == nil {
		return value, nil
	}
	if value, err = load(ctx); err == nil {
		r.Set(ctx, key, value, ringLife) // who has the value does not mind
	}
	return value, err
}

func (r *ringed) Many(ctx context.Context, keys []string, load func(context.Context, []string) (map[string]string, error)) (map[string]string, map[string]error) {
	values, failed := map[string]string{}, map[string]error{}
	for _, key := range keys {
		value, err := "", error(nil)
		if load == nil {
			value, err = r.Get(ctx, key)
		} else {
			value, err = r.Load(ctx, key, func(ctx context.Context) (string, error) {
				got, err := load(ctx, []string{key})
				if _, found := got[key]; !found && err == nil {
					err = tiercache.ErrNotFound
				}
				return got[key], err
			})
		}
		switch {
		case err == nil:
			values[key] = value
		case !errors.Is(err, tiercache.ErrNotFound):
			failed[key] = err
		}
	}
	return values, failed
}

func (r *ringed) Set(ctx context.Context, key, value string, life time.Duration) error {
	if life == 0 {
		life = ringLife
	}
	if err := r.ring.Set(ctx, key, value, life).Err(); err != nil {
		r.local.Invalidate(key)
		return err
	}
	r.local.Set(key, value)
	return nil
}

func (r *ringed) Delete(ctx context.Context, key string) error {
	r.local.Invalidate(key)
	return r.ring.Del(ctx, key).Err()
}

func (r *ringed) Refused(error) bool { return false }

// Health is not to be had of a Ring but in a log.
func (r *ringed) Health() map[string]bool { return nil }

// Owner takes it that no key moves: the checker of a Ring finds enough.
func (r *ringed) Owner() func(key string) (name string, moves bool) { return r.owner }

func (r *ringed) owner(key string) (name string, moves bool) {
	client, err := r.ring.GetShardClientForKey(key)
	if err != nil {
		return "", false
	}
	for name, addr := range r.Addrs {
		if client.Options().Addr == addr {
			return name, false
		}
	}
	return "", false
}

func (r *ringed) Join(context.Context) error {
	r.ring.SetAddrs(r.members(true))
	return nil
}

func (r *ringed) Leave(context.Context) error {
	r.ring.SetAddrs(r.members(false))
	return nil
}

// members are the addresses of the shards, with or without the spare one.
func (c *config) members(joined bool) map[string]string {
	addrs := maps.Clone(c.Addrs)
	if !joined {
		delete(addrs, c.Spare)
	}
	return addrs
}

func (r *ringed) Counts() (copied, inherited uint64) { return 0, 0 }

func (r *ringed) Close() error { return r.ring.Close() }

// keyName is a key as the subject has it; its number is what a history has.
func keyName(key int) string { return fmt.Sprintf("key:%d", key) }
