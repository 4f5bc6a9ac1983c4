package slotmap

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkSlot(b *testing.B) {
	letters := strings.Repeat("abcdefghij", 26)
	for _, n := range []int{8, 16, 32, 64, 256} {
		for _, c := range []struct{ name, key string }{
			{"plain", letters[:n]},
			{"tagged", "sub:{" + letters[:n-6] + "}"},
		} {
			b.Run(fmt.Sprintf("%s/%dB", c.name, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					Slot(c.key)
				}
			})
		}
	}
}

func BenchmarkSlotBytes(b *testing.B) {
	key := []byte("subs:{1234567890}")
	for b.Loop() {
		SlotBytes(key)
	}
}

func BenchmarkTag(b *testing.B) {
	slot := uint16(0)
	for b.Loop() {
		Tag(slot % Slots)
		slot++
	}
}

func BenchmarkKeyFor(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		KeyFor("active", "subs:{1234567890}")
	}
}

func BenchmarkAppendKeyFor(b *testing.B) {
	b.ReportAllocs()
	dst := make([]byte, 0, 64)
	for b.Loop() {
		dst = AppendKeyFor(dst[:0], "active", 4897)
	}
}

func BenchmarkCheckSameSlot(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if err := CheckSameSlot("subs:{1234567890}", "active:{1234567890}"); err != nil {
			b.Fatal(err)
		}
	}
}
