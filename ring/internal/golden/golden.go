// Package golden says in a few lines where rings place keys, so that two builds can be compared: of two versions, or for two
// architectures.
package golden

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"github.com/shardkit/shardkit/ring"
)

func cases() []struct {
	name  string
	nodes []ring.Node
	opts  *ring.Options
	down  []string
} {
	numbered := func(n int) []ring.Node {
		var names []string
		for i := range n {
			names = append(names, "shard-"+strconv.Itoa(i+1))
		}
		return ring.Nodes(names...)
	}
	weighted := []ring.Node{{Name: "a", Weight: 1}, {Name: "b", Weight: 0.3}, {Name: "c", Weight: 2.5}, {Name: "d", Weight: 1e-1}, {Name: "e", Weight: 3}}
	exact := ring.Table{Exact: true}
	type c = struct {
		name  string
		nodes []ring.Node
		opts  *ring.Options
		down  []string
	}
	return []c{
		{"1", numbered(1), nil, nil},
		{"3", numbered(3), nil, nil},
		{"10", numbered(10), nil, nil},
		{"100", numbered(100), nil, nil},
		{"1000", numbered(1000), nil, nil},
		{"weighted", weighted, nil, nil},
		{"weighted, two down", weighted, nil, []string{"c", "d"}},
		{"10 on 1<<14 buckets", numbered(10), &ring.Options{Placement: ring.Table{Buckets: 1 << 14}}, nil},
		{"10 on 1<<20 buckets", numbered(10), &ring.Options{Placement: ring.Table{Buckets: 1 << 20}}, nil},
		{"10 exact", numbered(10), &ring.Options{Placement: exact}, nil},
		{"weighted exact", weighted, &ring.Options{Placement: exact}, nil},
		{"weighted exact, one down", weighted, &ring.Options{Placement: exact}, []string{"e"}},
		{"10 classic", numbered(10), &ring.Options{Placement: ring.Classic{}}, nil},
		{"weighted classic", weighted, &ring.Options{Placement: ring.Classic{VirtualNodes: 40}}, nil},
		{"weighted classic, one down", weighted, &ring.Options{Placement: ring.Classic{VirtualNodes: 40}}, []string{"a"}},
		{"10 with hash tags", numbered(10), &ring.Options{HashTags: true}, nil},
		{"binary names", ring.Nodes("\x00", "\xff\xfe", "é", "a name of more than sixteen bytes"), nil, nil},
	}
}

// Keys is how many decimal numbers from 0 are placed: enough to meet every bucket of a table of 1<<16.
const Keys = 1_000_000

// Lines returns a line for one in every so many of several rings: its fingerprint; a hash of the owners of [Keys] keys; a hash of
// the first five nodes of a thousand keys of all lengths to 100; and where one key is.
func Lines(every int) ([]string, error) {
	var lines []string
	for i, c := range cases() {
		if i%every != 0 {
			continue
		}
		r, err := ring.New(c.nodes, c.opts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		if r, err = r.WithDown(c.down...); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		owners := fnv.New64a()
		var key []byte
		buf := make([]byte, 0, 4096)
		for i := range Keys {
			key = strconv.AppendInt(key[:0], int64(i), 10)
			owner := r.Index(string(key))
			if buf = append(buf, byte(owner), byte(owner>>8)); len(buf) == cap(buf) {
				owners.Write(buf)
				buf = buf[:0]
			}
		}
		owners.Write(buf)
		orders := fnv.New64a()
		key = key[:0]
		for i := range 1000 {
			for _, node := range r.AppendN(nil, string(key), 5) {
				orders.Write([]byte{byte(node), byte(node >> 8)})
			}
			if key = append(key, "0123456789:{user}-ab"[(i+i/100)%20]); len(key) > 100 {
				key = key[:0]
			}
		}
		lines = append(lines, fmt.Sprintf("%-26s %016x %016x %016x %q", c.name, r.Fingerprint(), owners.Sum64(), orders.Sum64(), r.Locate("user:{42}:name")))
	}
	return lines, nil
}
