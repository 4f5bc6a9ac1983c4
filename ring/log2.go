package ring

import (
	"math/bits"
	"sync"
)

// logUnit is 1 in what logTable holds.
const logUnit = 1 << 40

// logTable holds -log2(1 - i/strata), for i from 0 to strata, in units of 1/logUnit. It is made of integers alone: math.Log differs
// in the last bit from one architecture to another, and one bit is a bucket that two processes place differently.
var logTable = sync.OnceValue(func() *[strata + 1]uint64 {
	var table [strata + 1]uint64
	for i := range uint64(strata) {
		// u/strata lies above 1/2 and at most at 1, and its logarithm is that of 1 - i/strata plus whole.
		u, whole := strata-i, uint64(0)
		for u <= strata/2 {
			u, whole = 2*u, whole+1
		}
		table[i] = whole * logUnit
		// x is strata/u in units of 2^-62, from 1 to below 2. Squaring it doubles its logarithm, whose integer part is then
		// the next bit (Knuth, The Art of Computer Programming, volume 1, section 1.2.2).
		x, _ := bits.Div64(strata>>2, 0, u)
		for bit := uint64(logUnit >> 1); bit != 0; bit >>= 1 {
			hi, lo := bits.Mul64(x, x)
			if x = hi<<2 | lo>>62; x >= 1<<63 {
				x >>= 1
				table[i] |= bit
			}
		}
	}
	// Infinite in truth. With 13 the last chord has the mean of the curve, 10 + log2(e), to one part in two hundred.
	table[strata] = 13 * logUnit
	return &table
})
