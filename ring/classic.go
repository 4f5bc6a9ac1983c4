package ring

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"
)

// Classic is the placement of the first consistent hashing: every node is many points on a circle, and a key belongs to the
// first point at or after its own hash. (Karger et al.: Consistent Hashing and Random Trees, 1997.) For those who know it
// and expect it: a node's share varies by several per cent, where [Table] keeps to tenths.
//
// Points and keys are hashed by 32-bit FNV-1a finished with MurmurHash3's fmix32; point i of a node is the hash of
// its name, '#' and i in decimal, from 0. Where two points coincide, the earlier name has the keys, whatever the order in
// which nodes came.
type Classic struct {
	// VirtualNodes is the number of points of a node of weight 1; zero means 150. Other weights are multiplied and rounded
	// up, so every node has a point.
	VirtualNodes int
}

const (
	defaultVirtualNodes = 150
	maxPoints           = 1 << 20
)

// circle is the points of all nodes in ascending order. Cell i is the arc that ends in point i; the first also holds what
// lies after the last point.
type circle struct {
	hashes []uint32
	nodes  []uint16

	// first holds, for the top bits of a hash, the first point that is not below all hashes with these bits: a search
	// begins there and takes a step or two, where a binary search would take a dozen.
	first []uint32
	shift int
}

type point struct {
	hash uint32
	node uint16
}

func (p Classic) virtualNodes() int {
	return cmp.Or(p.VirtualNodes, defaultVirtualNodes)
}

func newCircle(p Classic, nodes []Node) (*circle, error) {
	if p.VirtualNodes < 0 {
		return nil, errorf("%d virtual nodes: want a positive number", p.VirtualNodes)
	}
	if n := totalWeight(nodes)*float64(p.virtualNodes()) + float64(len(nodes)); n > maxPoints {
		return nil, errorf("%.0f virtual nodes in all: at most %d", n, maxPoints)
	}
	var points []point
	var name []byte
	for i, node := range nodes {
		n := int(math.Ceil(node.Weight * float64(p.virtualNodes())))
		for k := range n {
			name = append(append(name[:0], node.Name...), '#')
			name = strconv.AppendInt(name, int64(k), 10)
			points = append(points, point{sum32(string(name)), uint16(i)})
		}
	}
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.node, b.node))
	})

	c := &circle{
		hashes: make([]uint32, len(points)),
		nodes:  make([]uint16, len(points)),
		shift:  32 - bits.Len(uint(len(points))),
	}
	arcs := make([]int, len(nodes))
	for i, p := range points {
		c.hashes[i], c.nodes[i] = p.hash, p.node
		if i == 0 || p.hash != points[i-1].hash {
			arcs[p.node]++
		}
	}
	if i := slices.Index(arcs, 0); i >= 0 {
		return nil, &NodeError{nodes[i].Name, ErrCollision}
	}
	c.first = make([]uint32, 1<<(32-c.shift))
	i := 0
	for top := range c.first {
		for i < len(points) && c.hashes[i]>>c.shift < uint32(top) {
			i++
		}
		c.first[top] = uint32(i)
	}
	return c, nil
}

// sum returns the key's cell.
func (c *circle) sum(key string) uint64 { return uint64(c.cell(sum32(key))) }

func (c *circle) cell(hash uint32) int {
	i := int(c.first[hash>>c.shift])
	for i < len(c.hashes) && c.hashes[i] < hash {
		i++
	}
	if i == len(c.hashes) {
		return 0
	}
	return i
}

// rank appends the first n distinct live nodes from the cell's point on.
func (c *circle) rank(dst []uint16, cell int, live []bool, n int) []uint16 {
	var seen [1 << indexBits / 64]uint64
	for i := range c.nodes {
		if n == 0 {
			break
		}
		at := cell + i
		if at >= len(c.nodes) {
			at -= len(c.nodes)
		}
		node := c.nodes[at]
		word, bit := node/64, uint64(1)<<(node%64)
		if live[node] && seen[word]&bit == 0 {
			seen[word] |= bit
			dst = append(dst, node)
			n--
		}
	}
	return dst
}
