package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/tiercache"
)

const (
	cacheKeys  = 1024
	cacheBatch = 50
)

// What is cached: 1 kB.
var cacheValue = strings.Repeat("0123456789abcdef", 64)

func cacheParts() []Part {
	var parts []Part
	for _, p := range []struct {
		name, doc string
		variants  func(*caches) []bench.Variant
	}{
		{"get", "a value of 1 kB that is there: GET, the shard by way of the cache, the process", (*caches).gets},
		{"load", "a value that is nowhere, from a loader that takes no time: GET and SET, GetOrLoad", (*caches).loads},
		{"get-many", fmt.Sprintf("%d values of 1 kB: a pipeline of GETs for each shard, the shards by way of the cache, the process", cacheBatch), (*caches).getsMany},
		{"set", "a value of 1 kB: SET, Set", (*caches).sets},
		{"invalidate", "Set in one process: until it returns, until a cache in another has the new value in the place of the one it held", (*caches).invalidations},
	} {
		parts = append(parts, Part{
			Name: "cache-" + p.name, Doc: p.doc + "; 3 shards",
			metric: "response_p50", takes: 5 * time.Second, count: 100,
			run: func(ctx context.Context, s *stage) (*bench.Result, error) { return cached(ctx, s, p.variants) },
		})
	}
	return parts
}

// caches is what the variants of a part use: two caches as in two processes, one without L1, and the clients alone.
type caches struct {
	one, two, remote *tiercache.Cache[string]
	others           []otherCache
	clients          []*redis.Client
	prefix           string
	keys             []string
	n                int
}

// otherCache is the cache without L1, by another client.
type otherCache struct {
	Adapter
	remote *tiercache.Cache[string]
}

func cached(ctx context.Context, s *stage, variants func(*caches) []bench.Variant) (res *bench.Result, err error) {
	c := &caches{clients: s.target.Shards, prefix: s.prefix}
	shards := map[string]tiercache.Shard{}
	for i, client := range c.clients {
		shards[fmt.Sprint("shard-", i+1)] = goredis.NewShard(client)
	}
	defer s.clean(ctx, &err, c.remove)
	for _, o := range []struct {
		cache **tiercache.Cache[string]
		local int64
	}{{&c.one, 0}, {&c.two, 0}, {&c.remote, -1}} {
		cache, err := tiercache.New[string](shards, &tiercache.Options{Namespace: s.prefix, LocalBytes: o.local})
		if err != nil {
			return nil, err
		}
		defer cache.Close()
		*o.cache = cache
	}
	for _, a := range s.target.Others {
		if len(a.Shards) == 0 {
			continue
		}
		shards := map[string]tiercache.Shard{}
		for i, shard := range a.Shards {
			shards[fmt.Sprint("shard-", i+1)] = shard
		}
		cache, err := tiercache.New[string](shards, &tiercache.Options{Namespace: s.prefix, LocalBytes: -1})
		if err != nil {
			return nil, err
		}
		defer cache.Close()
		c.others = append(c.others, otherCache{a, cache})
	}
	if err := c.fill(ctx); err != nil {
		return nil, err
	}
	return s.bench(ctx, bench.Options{Load: s.opts.load(3*time.Second, 20*time.Second)}, variants(c)...)
}

// fill waits until the caches hear of each other's writes: until then they keep nothing.
func (c *caches) fill(ctx context.Context) error {
	for i := range cacheKeys {
		key := fmt.Sprintf("key:%06d", i)
		c.keys = append(c.keys, key)
		if err := c.one.Set(ctx, key, cacheValue); err != nil {
			return err
		}
		if err := c.plain(key).Set(ctx, c.plainKey(key), cacheValue, 0).Err(); err != nil {
			return err
		}
	}
	until := time.Now().Add(10 * time.Second)
	for _, cache := range []*tiercache.Cache[string]{c.one, c.two} {
		for {
			before := cache.Stats().LocalHits
			for _, key := range c.keys {
				if _, err := cache.Get(ctx, key); err != nil {
					return err
				}
			}
			if cache.Stats().LocalHits-before == cacheKeys {
				break
			}
			if time.Now().After(until) {
				return errors.New("bench: a cache does not keep what it read: are the shards' notices delivered?")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// plain is the client of the shard that has the key, and plainKey its place beside the cache's.
func (c *caches) plain(key string) *redis.Client { return c.clients[c.one.Ring().Index(key)] }
func (c *caches) plainKey(key string) string     { return c.prefix + "-plain:" + key }

func (c *caches) next() string {
	c.n++
	return c.keys[c.n*31%len(c.keys)]
}

func (c *caches) remove(ctx context.Context) error {
	for _, client := range c.clients {
		scan := client.Scan(ctx, 0, "*"+c.prefix+"*", 1000).Iterator()
		var keys []string
		for scan.Next(ctx) {
			keys = append(keys, scan.Val())
		}
		if err := scan.Err(); err != nil {
			return err
		}
		if len(keys) > 0 {
			if err := client.Unlink(ctx, keys...).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *caches) gets() []bench.Variant {
	get := func(cache *tiercache.Cache[string]) bench.Op {
		return func(ctx context.Context) error { return full(cache.Get(ctx, c.next())) }
	}
	variants := []bench.Variant{
		bench.Func(bare, func(ctx context.Context) error {
			key := c.next()
			return full(c.plain(key).Get(ctx, c.plainKey(key)).Result())
		}),
		bench.Func(ours, get(c.remote)),
		bench.Func("process", get(c.one)),
	}
	for _, o := range c.others {
		variants = append(variants, bench.Func(o.of(bare), func(ctx context.Context) error {
			key := c.next()
			reply, err := o.Shards[c.one.Ring().Index(key)].Do(ctx, []string{"GET", c.plainKey(key)})
			value, _ := reply.(string)
			return full(value, err)
		}), bench.Func(o.of(ours), get(o.remote)))
	}
	return variants
}

func full(value string, err error) error {
	if err == nil && len(value) != len(cacheValue) {
		return fmt.Errorf("a value of %d bytes, not %d", len(value), len(cacheValue))
	}
	return err
}

func (c *caches) loads() []bench.Variant {
	fresh := func() string {
		c.n++
		return fmt.Sprintf("load:%09d", c.n)
	}
	const life = 10 * time.Second // they need not stay
	load := func(cache *tiercache.Cache[string]) bench.Op {
		return func(ctx context.Context) error {
			return full(cache.GetOrLoad(ctx, fresh(), func(context.Context) (string, error) { return cacheValue, nil }, tiercache.TTL(life)))
		}
	}
	variants := []bench.Variant{
		bench.Func(bare, func(ctx context.Context) error {
			key := fresh()
			client, place := c.plain(key), c.plainKey(key)
			if err := client.Get(ctx, place).Err(); !errors.Is(err, redis.Nil) {
				return errors.Join(errors.New("it is there"), err)
			}
			return client.Set(ctx, place, cacheValue, life).Err()
		}),
		bench.Func(ours, load(c.one)),
	}
	for _, o := range c.others {
		variants = append(variants, bench.Func(o.of(ours), load(o.remote)))
	}
	return variants
}

func (c *caches) getsMany() []bench.Variant {
	batch := func() []string {
		c.n++
		return c.keys[c.n*cacheBatch%(len(c.keys)-cacheBatch):][:cacheBatch]
	}
	many := func(cache *tiercache.Cache[string]) bench.Op {
		return func(ctx context.Context) error {
			values, err := cache.GetMany(ctx, batch(), nil)
			if err == nil && len(values) != cacheBatch {
				err = fmt.Errorf("%d values, not %d", len(values), cacheBatch)
			}
			return err
		}
	}
	variants := []bench.Variant{
		bench.Func(bare, func(ctx context.Context) error { return c.pipelines(ctx, batch()) }),
		bench.Func(ours, many(c.remote)),
		bench.Func("process", many(c.one)),
	}
	for _, o := range c.others {
		variants = append(variants, bench.Func(o.of(ours), many(o.remote)))
	}
	return variants
}

// pipelines asks all shards at once.
func (c *caches) pipelines(ctx context.Context, keys []string) error {
	pipes := make([]redis.Pipeliner, len(c.clients))
	for _, key := range keys {
		i := c.one.Ring().Index(key)
		if pipes[i] == nil {
			pipes[i] = c.clients[i].Pipeline()
		}
		pipes[i].Get(ctx, c.plainKey(key))
	}
	errs := make(chan error, len(pipes))
	for _, p := range pipes {
		go func() {
			if p == nil {
				errs <- nil
				return
			}
			_, err := p.Exec(ctx)
			errs <- err
		}()
	}
	var all []error
	for range pipes {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func (c *caches) sets() []bench.Variant {
	set := func(cache *tiercache.Cache[string]) bench.Op {
		return func(ctx context.Context) error { return cache.Set(ctx, c.next(), cacheValue) }
	}
	variants := []bench.Variant{
		bench.Func(bare, func(ctx context.Context) error {
			key := c.next()
			return c.plain(key).Set(ctx, c.plainKey(key), cacheValue, 0).Err()
		}),
		bench.Func(ours, set(c.one)),
	}
	for _, o := range c.others {
		variants = append(variants, bench.Func(o.of(bare), func(ctx context.Context) error {
			key := c.next()
			_, err := o.Shards[c.one.Ring().Index(key)].Do(ctx, []string{"SET", c.plainKey(key), cacheValue})
			return err
		}), bench.Func(o.of(ours), set(o.remote)))
	}
	return variants
}

// invalidations writes by one cache what the other one holds in its L1.
func (c *caches) invalidations() []bench.Variant {
	version := 0
	write := func(ctx context.Context) (key, value string, err error) {
		key = c.next()
		if _, err = c.two.Get(ctx, key); err != nil {
			return key, "", err
		}
		version++
		value = fmt.Sprintf("%s%016d", cacheValue[16:], version)
		return key, value, c.one.Set(ctx, key, value)
	}
	return []bench.Variant{
		bench.Func("written", func(ctx context.Context) error {
			_, _, err := write(ctx)
			return err
		}),
		bench.Func(ours, func(ctx context.Context) error {
			key, value, err := write(ctx)
			for until := time.Now().Add(5 * time.Second); err == nil; {
				var got string
				if got, err = c.two.Get(ctx, key); got == value {
					return err
				}
				if err == nil && time.Now().After(until) {
					err = errors.New("the other process has the old value after 5 s")
				}
			}
			return err
		}),
	}
}
