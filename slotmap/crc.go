package slotmap

// The CRC of a key is the remainder of its bits, read as a polynomial over GF(2) and multiplied by x^16, modulo
//
//	P = x^16 + x^12 + x^5 + 1
//
// P has four terms, and squaring over GF(2) only doubles exponents: P^4 = x^64 + x^48 + x^20 + 1 has four terms too. So
// the division is done by a few shifts, eight bytes at a time. Table-driven forms (slicing-by-8, 4 KiB of tables) were
// measured at 1.4 to 2 times the time of this one, and they compete with the caller for the first-level cache.
//
// To divide w·x^n by x^n·(1 + a), where a has negative powers of x only, multiply w by
// 1/(1 + a) = (1 + a)(1 + a^2)(1 + a^4)..., where powers below x^-63 fall off a 64-bit word. That is the quotient; the
// remainder is what it leaves in the low n bits when multiplied by the divisor, whose top term cannot reach them.

// fold returns the remainder of w·x^64 modulo P^4, hence congruent to it modulo P: it makes room for eight more bytes.
func fold(w uint64) uint64 {
	w ^= w>>16 ^ w>>44
	w ^= w >> 32
	return w ^ w<<20 ^ w<<48
}

// finish returns the remainder of w·x^16 modulo P: the CRC of the eight bytes of w, the first being the highest. Zero
// bytes in front do not change it, since the CRC starts from zero.
func finish(w uint64) uint16 {
	w ^= w>>4 ^ w>>11 ^ w>>16
	w ^= w>>8 ^ w>>22 ^ w>>32
	w ^= w>>16 ^ w>>44
	w ^= w >> 32
	return uint16(w ^ w<<5 ^ w<<12)
}
