package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

const slots = 16384

// table holds for each slot the smallest non-negative decimal integer whose digits hash to it.
type table [slots]uint32

// compute tries the integers in order. Six digits are plenty: it ends at 109757.
func compute() *table {
	var t table
	var found [slots]bool
	digits := make([]byte, 0, 10)
	for n, left := uint32(0), slots; left > 0; n++ {
		digits = strconv.AppendUint(digits[:0], uint64(n), 10)
		// Digits hold no brace, so the whole of them is hashed.
		if slot := crc16(digits) % slots; !found[slot] {
			found[slot] = true
			t[slot] = n
			left--
		}
	}
	return &t
}

func (t *table) largest() uint32 {
	var most uint32
	for _, n := range t {
		most = max(most, n)
	}
	return most
}

// sum is the sha256 of the integers in slot order, each as four bytes, lowest first: it names the table whatever the
// layout of the file that holds it.
func (t *table) sum() string {
	b := make([]byte, 0, 4*slots)
	for _, n := range t {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
