package slotmap

const (
	eachByte = 0x0101010101010101
	topBits  = 0x8080808080808080
	opening  = '{' * eachByte
	closing  = '}' * eachByte
)

// load returns key[i:i+8], the first byte being the lowest. The compiler makes one load of it; encoding/binary would do
// the same, but brings reflect into every importer.
func load(key string, i int) uint64 {
	b := key[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// loadShort is load for fewer than eight bytes; the others are zero.
func loadShort(key string) uint64 {
	var x uint64
	for i := len(key) - 1; i >= 0; i-- {
		x = x<<8 | uint64(key[i])
	}
	return x
}

// match sets the top bit of the bytes of x that equal the byte repeated in pattern. Only the first set bit, from the lowest, is
// to be trusted: the subtraction may borrow from the bytes after a match.
func match(x, pattern uint64) uint64 {
	x ^= pattern
	return (x - eachByte) &^ x & topBits
}
