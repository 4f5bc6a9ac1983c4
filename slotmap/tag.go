package slotmap

import "strconv"

//go:generate go run -C ../tools/tablegen . -o ../../slotmap/tags.go

// Tag returns the smallest non-negative decimal integer, without leading zeros, that hashes to slot: "0" to "109757", one
// to six digits. A key that carries it in braces lies in that slot. It does not allocate.
//
// It panics when slot is beyond 16383.
func Tag(slot uint16) string {
	if slot >= Slots {
		panic("slotmap: no slot " + strconv.Itoa(int(slot)) + ": a cluster has slots 0 to 16383")
	}
	// One column of the table: padded on the left, and followed by a separator.
	at := int(slot) * (tagWidth + 1)
	tag := tags[at : at+tagWidth]
	for tag[0] == ' ' {
		tag = tag[1:]
	}
	return tag
}
