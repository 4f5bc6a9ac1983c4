package ring

import "math/bits"

// The fractional parts of the square roots of 2, 3 and 5: constants with nothing hidden in them.
const (
	sqrt2 = 0x6a09e667f3bcc908
	sqrt3 = 0xbb67ae8584caa73b
	sqrt5 = 0x3c6ef372fe94f82b
)

// hasher takes keys to hashes.
type hasher struct {
	special bool // what follows is not all zero: one comparison for the common case
	tags    bool
	circle  *circle
}

var plain hasher

// sum returns sum64 of the key or of its hash tag, or the key's cell on the circle.
func (h *hasher) sum(s string) uint64 {
	if h.special {
		if h.tags {
			s = hashTag(s)
		}
		if h.circle != nil {
			return h.circle.sum(s)
		}
	}
	var a, b uint64
	n := len(s)
	seed := uint64(sqrt3)
	switch {
	case n > 16:
		rest := s
		for len(rest) > 16 {
			seed = fold(load64(rest)^sqrt5, load64(rest[8:])^seed)
			rest = rest[16:]
		}
		a, b = load64(s[n-16:]), load64(s[n-8:])
	case n >= 8:
		a, b = load64(s), load64(s[n-8:])
	case n >= 4:
		a, b = load32(s), load32(s[n-4:])
	case n > 0:
		a = uint64(s[0])<<16 | uint64(s[n/2])<<8 | uint64(s[n-1])
	}
	hi, lo := bits.Mul64(a^sqrt2, b^seed)
	// The second round is what spreads keys that differ in their last digit; the length tells apart keys whose loads
	// overlap to the same words.
	return fold(lo^sqrt5, hi^uint64(n)^sqrt3)
}

// sum64 hashes keys and names. It is of the wyhash family (github.com/wangyi-fudan/wyhash): words are multiplied to 128 bits
// and folded. Up to 16 bytes it is faster than xxh3 and needs no assembly to be; to 64 they are equals, and only beyond
// is xxh3 the faster. It never changes: the place of every key depends on it.
func sum64(s string) uint64 { return plain.sum(s) }

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// load64 returns the first eight bytes of s, the first being the lowest on every machine. The compiler makes one load of it.
func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

func load32(s string) uint64 {
	_ = s[3]
	return uint64(uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24)
}

// mix64 is the output function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// sum32 is FNV-1a finished with MurmurHash3's fmix32: FNV-1a alone leaves the high bits of similar strings alike, and the
// high bits are what a ring of points is ordered by.
func sum32(s string) uint32 {
	h := uint32(2166136261)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint32(s[i])) * 16777619
	}
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}
