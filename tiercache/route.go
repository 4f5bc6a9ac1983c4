package tiercache

import (
	"strings"

	"github.com/shardkit/shardkit/ring"
)

// A routing is which shard is asked for which key: the placement, and the shards
// that this process takes for out. It never changes; another takes its place.
type routing struct {
	whole   *ring.Ring // with every shard
	live    *ring.Ring // without those that are out
	remotes []*remote  // by their numbers in both
	out     bool       // there are some
	list    int64      // the number of the list of shards, 0 for none
	joined  []string   // as in the list
	fresh   int64      //

	handover // from the list before
}

// A route is where an operation on some keys goes: the shard that owns them, or
// the next one in their walk while that is out.
type route struct {
	*remote
	stand *stand
	list  int64 // the number of the list by which it was found
}

// A stand is why a shard answers for keys of others; nil where it is their owner.
type stand struct {
	routing *routing // in which it does
	ahead   []*remote
}

// route is the way to key.
func (rs *routing) route(key string) route {
	i := rs.live.Index(key)
	if !rs.out {
		return route{remote: rs.remotes[i], list: rs.list}
	}
	return rs.around(key, i)
}

// around is the route to node i, past the nodes before it in the key's walk.
func (rs *routing) around(key string, i int) route {
	var array [8]int
	rt := route{remote: rs.remotes[i], list: rs.list}
	for n := 1; rs.whole.Index(key) != i; n *= 2 {
		walk := rs.whole.AppendN(array[:0], key, n)
		for at, node := range walk {
			if node != i {
				continue
			}
			rt.stand = &stand{routing: rs}
			for _, before := range walk[:at] {
				rt.stand.ahead = append(rt.stand.ahead, rs.remotes[before])
			}
			return rt
		}
	}
	return rt
}

// routed is the keys of one route, by their positions.
type routed struct {
	route
	keys []int
}

// group sorts keys by their routes.
func (rs *routing) group(keys []string) []routed {
	var groups []routed
	for _, g := range rs.live.Group(keys) {
		if !rs.out {
			groups = append(groups, routed{route{remote: rs.remotes[g.Node], list: rs.list}, g.Keys})
			continue
		}
		same := map[string]int{}
		for _, at := range g.Keys {
			rt := rs.around(keys[at], g.Node)
			name := rt.stand.names()
			i, ok := same[name]
			if !ok {
				i = len(groups)
				same[name] = i
				groups = append(groups, routed{route: rt})
			}
			groups[i].keys = append(groups[i].keys, at)
		}
	}
	return groups
}

// names are those of the shards that are stood in for, in the order of the walk.
func (s *stand) names() string {
	if s == nil {
		return ""
	}
	var names strings.Builder
	for _, r := range s.ahead {
		names.WriteString(r.name)
		names.WriteByte(0)
	}
	return names.String()
}
