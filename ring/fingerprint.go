package ring

import (
	"encoding/binary"
	"math"
	"strconv"
)

// Fingerprint is a number that two rings share if they place every key on the same node when nothing is down: it is made of
// the names, the weights, the placement with its options, and [Options.HashTags]. It is the same in every process and on
// every architecture, and the overlay does not change it. Processes that share a cache compare it, to notice that one
// of them was configured otherwise. It is not proof against someone who looks for a collision.
func (r *Ring) Fingerprint() uint64 {
	data := append(r.describe(), 0)
	for _, n := range r.nodes {
		data = binary.LittleEndian.AppendUint64(data, uint64(len(n.Name)))
		data = append(data, n.Name...)
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(n.Weight))
	}
	return sum64(string(data))
}

// describe names everything but the nodes that the place of a key depends on. A version that places keys otherwise must
// say so here.
func (r *Ring) describe() []byte {
	text := r.placement.describe(nil)
	if r.tags {
		text = append(text, ", hash tags"...)
	}
	return text
}

func (p Table) describe(dst []byte) []byte {
	n, _ := p.bits()
	dst = append(dst, "table of "...)
	dst = strconv.AppendInt(dst, 1<<n, 10)
	if p.Exact {
		dst = append(dst, ", exact"...)
	}
	return dst
}

func (p Classic) describe(dst []byte) []byte {
	dst = append(dst, "circle of "...)
	return strconv.AppendInt(dst, int64(p.virtualNodes()), 10)
}
