package ring

import "math"

// strata is how many buckets a block has, and how many strata the scores of a node in a block.
//
// In every block a node draws one score from each stratum: which bucket gets which is a permutation of its own for
// every node and block. Independent scores would spread a node's share half as widely again, for the number of low scores
// that it draws would vary as well. And a build can visit the low scores of a block first, all of them in the cache.
const (
	strataBits = 10
	strata     = 1 << strataBits
	strataMask = strata - 1
)

// scorer is what a node's scores depend on.
type scorer struct {
	seed uint64  // of the name
	rate float64 // 1/weight
}

func newScorer(n Node) scorer { return scorer{sum64(n.Name), 1 / n.Weight} }

// candidate is what the nodes of a bucket are compared by: a cost, as the bits of a positive float64, whose order is that
// of the numbers; and in its lowest bits the node's number, so that equal costs are ordered by name.
type candidate uint64

const (
	indexBits   = 10
	indexMask   = 1<<indexBits - 1
	noCandidate = candidate(math.MaxUint64)
)

func (c candidate) node() uint16 { return uint16(c & indexMask) }

// cost is what it was, but for its lowest bits.
func (c candidate) cost() float64 { return math.Float64frombits(uint64(c) &^ indexMask) }

// newCandidate adds nothing to a product, so that no compiler may fuse the two and round otherwise.
func newCandidate(log uint64, rate float64, node int) candidate {
	return candidate(math.Float64bits(float64(int64(log))*rate)&^indexMask | uint64(node))
}

// newLimit is above the candidates of costs up to the given one, whatever their nodes, and below those of higher costs.
func newLimit(cost float64) candidate { return candidate(math.Float64bits(cost) | indexMask) }

// draw is a node's scores in one block: 64 random bits, of which three odd multipliers, an addend and an offset are made.
//
// stratum takes the place of a bucket in the block to the stratum of its score. It is a permutation, since each step is:
// odd multipliers have inverses, and half is its own.
type draw uint64

func (s *scorer) draw(block int) draw {
	const step = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio, SplitMix64's increment
	return draw(mix64(s.seed + uint64(block+1)*step))
}

func (d draw) stratum(place uint32) uint32 {
	x := half((place*d.m1() + d.addend()) & strataMask)
	x = half(x * d.m2() & strataMask)
	return x * d.m3() & strataMask
}

func (d draw) m1() uint32     { return uint32(d) | 1 }
func (d draw) m2() uint32     { return uint32(d>>10) | 1 }
func (d draw) m3() uint32     { return uint32(d>>20) | 1 }
func (d draw) addend() uint32 { return uint32(d >> 30) }

func half(x uint32) uint32 { return x ^ x>>(strataBits/2) }

// offset is the place of all scores within their strata, in units of 2^-offsetBits. It is odd, so that no score is zero.
func (d draw) offset() uint64 { return uint64(d>>(64-offsetBits)) | 1 }

const offsetBits = 22

// undo is the inverse of a draw's stratum.
type undo struct{ m1, m2, m3, addend uint32 }

func (d draw) undo() undo {
	return undo{inverse(d.m1()), inverse(d.m2()), inverse(d.m3()), d.addend()}
}

func (u undo) place(stratum uint32) uint32 {
	x := half(stratum * u.m3 & strataMask)
	x = half(x * u.m2 & strataMask)
	return (x - u.addend) * u.m1 & strataMask
}

// inverse returns 1/m modulo strata, for an odd m: m is its own inverse modulo 8, and each of Newton's steps doubles the bits
// that are right.
func inverse(m uint32) uint32 {
	x := m * (2 - m*m)
	return x * (2 - m*x)
}

// log returns -log2(1 - v), v being the score: on the chord of the stratum, which lies above the curve by less than one part in
// 1000, even in the first stratum, where the logarithm is near zero and the best scores lie. low and high are the
// chord's ends.
func log(low, high, offset uint64) uint64 { return low + (high-low)*offset>>offsetBits }

// visit lowers best, by place in the block, to the node's own candidates below beyond.
func (s *scorer) visit(best *[strata]candidate, logs *[strata + 1]uint64, block, node int, beyond candidate) {
	d, rate := s.draw(block), s.rate
	undo, offset := d.undo(), d.offset()
	for stratum := range uint32(strata) {
		c := newCandidate(log(logs[stratum], logs[stratum+1], offset), rate, node)
		if c >= beyond {
			break
		}
		place := undo.place(stratum)
		best[place] = min(best[place], c)
	}
}
