package slotmap

import (
	"math/bits"
	"unsafe"
)

// Slots is the number of slots of a Redis Cluster; they are numbered 0 to Slots-1.
const Slots = 16384

// Slot returns the slot of key, 0 to 16383: the CRC16 of [HashTag](key) modulo 16384, as the Redis Cluster specification
// defines it under "Hash tags". Any string is a key; the empty one belongs to slot 0. It does not allocate.
func Slot(key string) uint16 {
	var x uint64
	if len(key) >= 8 {
		x = load(key, 0)
	} else {
		x = loadShort(key)
	}
	// The search for a brace rides along with the CRC, so a key without one is read once. A brace that opens no tag ends the
	// search and not the CRC.
	searching := ^uint64(0)
	if m := match(x, opening); m != 0 {
		if crc, ok := tagCRC(key, bits.TrailingZeros64(m)/8); ok {
			return crc % Slots
		}
		searching = 0
	}
	// The odd bytes are taken first: in front, they are padded by zeros that leave the CRC alone.
	pad := -len(key) & 7
	w := bits.ReverseBytes64(x) >> (8 * uint(pad))
	for i := 8 - pad; i <= len(key)-8; i += 8 {
		x := load(key, i)
		if m := match(x, opening) & searching; m != 0 {
			if crc, ok := tagCRC(key, i+bits.TrailingZeros64(m)/8); ok {
				return crc % Slots
			}
			searching = 0
		}
		w = fold(w) ^ bits.ReverseBytes64(x)
	}
	return finish(w) % Slots
}

// SlotBytes is [Slot] for a key held as bytes. It keeps no reference to key.
func SlotBytes(key []byte) uint16 {
	return Slot(view(key))
}

// tagCRC returns the CRC of the tag that opens with the brace at key[open], or false when it is empty or never closed.
func tagCRC(key string, open int) (uint16, bool) {
	var w uint64
	for i := open + 1; i < len(key); i += 8 {
		var x uint64
		switch {
		case i <= len(key)-8:
			x = load(key, i)
		case len(key) >= 8:
			// The last eight bytes of the key, without those before i.
			x = load(key, len(key)-8) >> (8 * uint(i+8-len(key)) & 63)
		default:
			x = loadShort(key[i:])
		}
		m := match(x, closing)
		if m == 0 {
			w = fold(w) ^ bits.ReverseBytes64(x)
			continue
		}
		n := uint(bits.TrailingZeros64(m)) &^ 7 // bits of the tag in x
		if n == 0 {
			if i == open+1 {
				return 0, false
			}
			return finish(w), true
		}
		tail := bits.ReverseBytes64(x) >> (64 - n)
		if i > open+1 {
			tail ^= w<<n ^ fold(w>>(64-n))
		}
		return finish(tail), true
	}
	return 0, false
}

// view reads b as a string without a copy, for functions that keep nothing of it.
func view(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}
