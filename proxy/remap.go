package proxy

import (
	"hash/fnv"
	"strconv"

	"github.com/shardkit/shardkit/ring"
)

// Remap is which part of the keys changes its shard, from 0 to 1, when shards come
// or go.
type Remap struct {
	Change string  `json:"change"`
	Ring   float64 `json:"ring"`
	Modulo float64 `json:"modulo"` // by hash(key) % shards
	Least  float64 `json:"least"`  // what no placement can do without
}

// remapKeys is how many keys are placed to measure a Remap.
const remapKeys = 20_000

// remaps measures what a shard more, and one fewer, would move.
func remaps(r *ring.Ring) []Remap {
	n := r.Len()
	var list []Remap
	if more, err := r.With(ring.Node{Name: "one shard more", Weight: 1}); err == nil {
		list = append(list, Remap{
			Change: "one shard more", Least: 1 / float64(n+1),
			Ring: moved(r.Locate, more.Locate), Modulo: moved(modulo(n), modulo(n+1)),
		})
	}
	if fewer, err := r.Without(r.Name(n - 1)); err == nil && fewer.Len() > 0 {
		list = append(list, Remap{
			Change: "one shard fewer", Least: 1 / float64(n),
			Ring: moved(r.Locate, fewer.Locate), Modulo: moved(modulo(n), modulo(n-1)),
		})
	}
	return list
}

// moved is the part of the keys that two placements give to different shards.
func moved[T comparable](before, after func(string) T) float64 {
	n := 0
	for i := range remapKeys {
		key := "key-" + strconv.Itoa(i)
		if before(key) != after(key) {
			n++
		}
	}
	return float64(n) / remapKeys
}

func modulo(n int) func(string) int {
	return func(key string) int {
		h := fnv.New64a()
		h.Write([]byte(key))
		return int(h.Sum64() % uint64(n))
	}
}
