package main

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
	"github.com/dgryski/go-jump"
	"github.com/golang/groupcache/consistenthash"
	"github.com/kkdai/maglev"
	"github.com/redis/go-redis/v9"
	"github.com/serialx/hashring"
	"github.com/shardkit/shardkit/ring"
	stathat "stathat.com/c/consistent"
)

// peer is one implementation.
type peer struct {
	name string
	// make returns the ring of the names. It may panic.
	make func(names []string) placed
}

// placed is a ring.
type placed struct {
	locate func(key string) string
	// all looks up every key, and returns something made of the answers. It calls the ring directly, as users do: an indirect
	// call would be a good part of what is measured.
	all   func(keys []string) int
	close func()
}

const virtualNodes = 150

func ours(opts *ring.Options) func([]string) placed {
	return func(names []string) placed {
		r, err := ring.New(ring.Nodes(names...), opts)
		if err != nil {
			panic(err)
		}
		return placed{locate: r.Locate, all: func(keys []string) (n int) {
			for _, key := range keys {
				n += len(r.Locate(key))
			}
			return n
		}}
	}
}

// As go-redis's Ring is used: hash tags, and safe against nodes that come and go meanwhile.
func oursLive(names []string) placed {
	r, err := ring.New(ring.Nodes(names...), &ring.Options{HashTags: true})
	if err != nil {
		panic(err)
	}
	live := ring.NewLive(r)
	return placed{locate: live.Locate, all: func(keys []string) (n int) {
		for _, key := range keys {
			n += len(live.Locate(key))
		}
		return n
	}}
}

// clients are go-redis's, one for each address, for a ring with clients of its own takes a millisecond to make.
var clients sync.Map

func clientOf(o *redis.Options) *redis.Client {
	c, ok := clients.Load(o.Addr)
	if !ok {
		c, _ = clients.LoadOrStore(o.Addr, redis.NewClient(o))
	}
	return c.(*redis.Client)
}

// The clients' addresses are the nodes' names; nothing ever connects to them.
func goRedis(names []string) placed {
	addresses := make(map[string]string, len(names))
	for _, name := range names {
		addresses[name] = name
	}
	r := redis.NewRing(&redis.RingOptions{
		Addrs:       addresses,
		NewClient:   clientOf,
		HeartbeatFn: func(context.Context, *redis.Client) bool { return true },
	})
	client := func(key string) *redis.Client {
		c, err := r.GetShardClientForKey(key)
		if err != nil {
			panic(err)
		}
		return c
	}
	return placed{
		locate: func(key string) string { return client(key).Options().Addr },
		all: func(keys []string) (n int) {
			for _, key := range keys {
				if client(key) != nil {
					n++
				}
			}
			return n
		},
		close: func() { r.Close() },
	}
}

// member and hasher are what buraksezer/consistent asks for; its own examples use this hash.
type member string

func (m member) String() string { return string(m) }

type hasher struct{}

func (hasher) Sum64(data []byte) uint64 { return xxhash.Sum64(data) }

// perfect is chance itself: it is no ring, and finds no key again.
func perfect(names []string) placed {
	return placed{locate: func(string) string { return names[rand.IntN(len(names))] }}
}

var peers = []peer{
	{"(floor: a perfect hash)", perfect},
	{"ring", ours(nil)},
	{"ring, 1<<18 buckets", ours(&ring.Options{Placement: ring.Table{Buckets: 1 << 18}})},
	{"ring, exact", ours(&ring.Options{Placement: ring.Table{Exact: true}})},
	{"ring, through Live, hash tags", oursLive},
	{"ring, classic of 150", ours(&ring.Options{Placement: ring.Classic{VirtualNodes: virtualNodes}})},
	{goRedisName, goRedis},
	{"stathat.com/c/consistent, 150", func(names []string) placed {
		c := stathat.New()
		c.NumberOfReplicas = virtualNodes
		for _, name := range names {
			c.Add(name)
		}
		get := func(key string) string {
			name, err := c.Get(key)
			if err != nil {
				panic(err)
			}
			return name
		}
		return placed{locate: get, all: func(keys []string) (n int) {
			for _, key := range keys {
				name, _ := c.Get(key)
				n += len(name)
			}
			return n
		}}
	}},
	{"serialx/hashring, 150", func(names []string) placed {
		// A node's weight is the number of its points.
		weights := make(map[string]int, len(names))
		for _, name := range names {
			weights[name] = virtualNodes
		}
		h := hashring.NewWithWeights(weights)
		return placed{
			locate: func(key string) string {
				name, _ := h.GetNode(key)
				return name
			},
			all: func(keys []string) (n int) {
				for _, key := range keys {
					name, _ := h.GetNode(key)
					n += len(name)
				}
				return n
			},
		}
	}},
	{"buraksezer/consistent", func(names []string) placed {
		members := make([]consistent.Member, len(names))
		for i, name := range names {
			members[i] = member(name)
		}
		c := consistent.New(members, consistent.Config{Hasher: hasher{}})
		return placed{
			locate: func(key string) string { return c.LocateKey([]byte(key)).String() },
			all: func(keys []string) (n int) {
				for _, key := range keys {
					n += len(c.LocateKey([]byte(key)).String())
				}
				return n
			},
		}
	}},
	{"groupcache/consistenthash, 150", func(names []string) placed {
		m := consistenthash.New(virtualNodes, nil)
		m.Add(names...)
		return placed{locate: m.Get, all: func(keys []string) (n int) {
			for _, key := range keys {
				n += len(m.Get(key))
			}
			return n
		}}
	}},
	{"kkdai/maglev, 65537", func(names []string) placed {
		m, err := maglev.NewMaglev(append([]string(nil), names...), 65537)
		if err != nil {
			panic(err)
		}
		return placed{
			locate: func(key string) string {
				name, _ := m.Get(key)
				return name
			},
			all: func(keys []string) (n int) {
				for _, key := range keys {
					name, _ := m.Get(key)
					n += len(name)
				}
				return n
			},
		}
	}},
	{"dgryski/go-jump, xxhash", func(names []string) placed {
		return placed{
			locate: func(key string) string { return names[jump.Hash(xxhash.Sum64String(key), len(names))] },
			all: func(keys []string) (n int) {
				for _, key := range keys {
					n += len(names[jump.Hash(xxhash.Sum64String(key), len(names))])
				}
				return n
			},
		}
	}},
	{"modulo, xxhash", func(names []string) placed {
		return placed{
			locate: func(key string) string { return names[xxhash.Sum64String(key)%uint64(len(names))] },
			all: func(keys []string) (n int) {
				for _, key := range keys {
					n += len(names[xxhash.Sum64String(key)%uint64(len(names))])
				}
				return n
			},
		}
	}},
}

const goRedisName = "redis/go-redis Ring"
