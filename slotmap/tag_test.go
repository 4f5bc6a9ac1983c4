package slotmap

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
)

func TestTagsAreTheSmallest(t *testing.T) {
	var found [Slots]bool
	left := Slots
	for n := 0; left > 0; n++ {
		digits := strconv.Itoa(n)
		slot := plainCRC(digits) % Slots
		if found[slot] {
			continue
		}
		found[slot] = true
		left--
		if got := Tag(slot); got != digits {
			t.Fatalf("Tag(%d): got %q, but %q hashes to it", slot, got, digits)
		}
	}
}

func TestTagsChecksum(t *testing.T) {
	var b []byte
	for slot := range uint16(Slots) {
		n, err := strconv.ParseUint(Tag(slot), 10, 32)
		if err != nil {
			t.Fatalf("Tag(%d): %v", slot, err)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	sum := sha256.Sum256(b)
	const want = "8cb2a0e5106dcba8f9866476e3dcaec29baaf37e8b09ac6fb24e65f4825d527c"
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("sha256 of the tags: got %s, want %s", got, want)
	}
}

func TestKeysOfEverySlot(t *testing.T) {
	for slot := range uint16(Slots) {
		want := "active:{" + Tag(slot) + "}"
		if got := KeyForSlot("active", slot); got != want || Slot(got) != slot {
			t.Fatalf("KeyForSlot(active, %d): got %q in slot %d, want %q", slot, got, Slot(got), want)
		}
		if got := AppendKeyFor([]byte("> "), "active", slot); string(got) != "> "+want {
			t.Fatalf("AppendKeyFor(%q, active, %d): got %q, want %q", "> ", slot, got, "> "+want)
		}
		if got := KeyFor("active", want); got != want {
			t.Fatalf("KeyFor(active, %q): got %q, want the same", want, got)
		}
	}
}

func TestSlotBeyondTheLast(t *testing.T) {
	for name, call := range map[string]func(uint16){
		"Tag":          func(slot uint16) { Tag(slot) },
		"KeyForSlot":   func(slot uint16) { KeyForSlot("active", slot) },
		"AppendKeyFor": func(slot uint16) { AppendKeyFor(nil, "active", slot) },
	} {
		for _, slot := range []uint16{16384, 65535} {
			func() {
				defer func() {
					want := "slotmap: no slot " + strconv.Itoa(int(slot))
					if got, _ := recover().(string); !strings.HasPrefix(got, want) {
						t.Errorf("%s(%d): got panic %q, want %q", name, slot, got, want)
					}
				}()
				call(slot)
			}()
		}
	}
}
