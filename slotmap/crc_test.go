package slotmap

import (
	"encoding/binary"
	"testing"
)

// Both functions are made of shifts and exclusive ors, hence linear: what holds for each bit alone holds for all words.

func TestFinishOnEachBit(t *testing.T) {
	for bit := range 64 {
		w := uint64(1) << bit
		message := binary.BigEndian.AppendUint64(nil, w)
		if got, want := finish(w), plainCRC(string(message)); got != want {
			t.Errorf("bit %d: got %#04x, want %#04x", bit, got, want)
		}
	}
}

func TestFoldOnEachBit(t *testing.T) {
	for bit := range 64 {
		w := uint64(1) << bit
		message := append(binary.BigEndian.AppendUint64(nil, w), make([]byte, 8)...)
		if got, want := finish(fold(w)), plainCRC(string(message)); got != want {
			t.Errorf("bit %d: got %#04x, want %#04x", bit, got, want)
		}
	}
}
