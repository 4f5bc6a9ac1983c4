package slotmap

import (
	"encoding/hex"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The rule transcribed from the specification, one step at a time and one bit at a time, to compare with.

func plainTag(key string) string {
	for i := 0; i < len(key); i++ {
		if key[i] != '{' {
			continue
		}
		for j := i + 1; j < len(key); j++ {
			if key[j] == '}' {
				if j == i+1 {
					return key
				}
				return key[i+1 : j]
			}
		}
		return key
	}
	return key
}

func plainCRC(key string) uint16 {
	var crc uint16
	for i := 0; i < len(key); i++ {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

func plainSlot(key string) uint16 { return plainCRC(plainTag(key)) % 16384 }

func TestPublishedVectors(t *testing.T) {
	if got := plainCRC("123456789"); got != 0x31c3 {
		t.Fatalf("the transcription: got CRC %#04x for 123456789, want 0x31c3", got)
	}
	for key, want := range map[string]uint16{
		"123456789": 0x31c3, // below 16384, so the slot is the CRC
		"foo":       12182,
		"":          0,
	} {
		if got := Slot(key); got != want {
			t.Errorf("Slot(%q): got %d, want %d", key, got, want)
		}
	}
}

// keyslots.tsv holds what CLUSTER KEYSLOT answered: the key in hexadecimal, a tab, the slot.
func TestServerVectors(t *testing.T) {
	text, err := os.ReadFile("testdata/keyslots.tsv")
	if err != nil {
		t.Fatal(err)
	}
	vectors := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		encoded, slot, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		key, err := hex.DecodeString(encoded)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		want, err := strconv.ParseUint(slot, 10, 14)
		if err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		if got := Slot(string(key)); got != uint16(want) {
			t.Errorf("Slot(%q): got %d, the server says %d", key, got, want)
		}
		if got := SlotBytes(key); got != uint16(want) {
			t.Errorf("SlotBytes(%q): got %d, the server says %d", key, got, want)
		}
		vectors++
	}
	if vectors != 398 {
		t.Errorf("got %d vectors, want 398", vectors)
	}
}

func TestHashTag(t *testing.T) {
	for key, want := range map[string]string{
		"":                "",
		"subs":            "subs",
		"subs:{42}":       "42",
		"{42}":            "42",
		"{42}.subs":       "42",
		"{a}{b}":          "a",
		"}{a}":            "a",
		"{}":              "{}",
		"{}{a}":           "{}{a}",
		"a{}b{c}":         "a{}b{c}",
		"{":               "{",
		"}":               "}",
		"}{":              "}{",
		"subs:{42":        "subs:{42",
		"subs:42}":        "subs:42}",
		"{{a}}":           "{a",
		"{{}":             "{",
		"{a{b}c}":         "a{b",
		"a{\x00\xff}b":    "\x00\xff",
		"{ }":             " ",
		"long-name:{{}}}": "{",
	} {
		if got := HashTag(key); got != want {
			t.Errorf("HashTag(%q): got %q, want %q", key, got, want)
		}
		if got := HashTagBytes([]byte(key)); string(got) != want {
			t.Errorf("HashTagBytes(%q): got %q, want %q", key, got, want)
		}
		if got, want := Slot(key), plainCRC(want)%Slots; got != want {
			t.Errorf("Slot(%q): got %d, want %d", key, got, want)
		}
	}
}

func TestHashTagBytesCannotOverwriteTheKey(t *testing.T) {
	key := []byte("subs:{42}:x")
	_ = append(HashTagBytes(key), "!!!"...)
	if string(key) != "subs:{42}:x" {
		t.Errorf("appending to the tag changed the key to %q", key)
	}
}

// Slot reads words of eight bytes, so every pair of brace positions in keys around the multiples of eight is tried.
func TestEveryBracePosition(t *testing.T) {
	const letters = "0123456789abcdefghijklmnop"
	for n := range len(letters) + 1 {
		for open := -1; open < n; open++ {
			for close := -1; close < n; close++ {
				b := []byte(letters[:n])
				if open >= 0 {
					b[open] = '{'
				}
				if close >= 0 {
					b[close] = '}'
				}
				if key := string(b); Slot(key) != plainSlot(key) {
					t.Fatalf("Slot(%q): got %d, want %d", key, Slot(key), plainSlot(key))
				}
			}
		}
	}
}

func TestRandomKeys(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	// Neighbours of the braces, and bytes with the top bit set, are what a word-wise search could mistake for them.
	const alphabet = "{}{}z|~\x7f\xfb\xfd\x00\x01\x7a\x7cab:"
	for range 200_000 {
		key := make([]byte, r.IntN(72))
		sparse := r.IntN(2) == 0
		for i := range key {
			if sparse {
				key[i] = byte(r.Uint32())
			} else {
				key[i] = alphabet[r.IntN(len(alphabet))]
			}
		}
		if got, want := SlotBytes(key), plainSlot(string(key)); got != want {
			t.Fatalf("seed %d: SlotBytes(%q): got %d, want %d", seed, key, got, want)
		}
	}
}

func FuzzSlot(f *testing.F) {
	f.Fuzz(func(t *testing.T, key string) {
		tag, want := plainTag(key), plainSlot(key)
		if got := HashTag(key); got != tag {
			t.Errorf("HashTag(%q): got %q, want %q", key, got, tag)
		}
		if got := HashTagBytes([]byte(key)); string(got) != tag {
			t.Errorf("HashTagBytes(%q): got %q, want %q", key, got, tag)
		}
		if got := Slot(key); got != want {
			t.Errorf("Slot(%q): got %d, want %d", key, got, want)
		}
		if got := SlotBytes([]byte(key)); got != want {
			t.Errorf("SlotBytes(%q): got %d, want %d", key, got, want)
		}
		if beside := KeyFor("set", key); Slot(beside) != want {
			t.Errorf("KeyFor(set, %q): got %q in slot %d, want slot %d", key, beside, Slot(beside), want)
		}
		if ValidName(key) == nil {
			if beside := KeyFor(key, "foo"); Slot(beside) != 12182 {
				t.Errorf("KeyFor(%q, foo): got %q in slot %d, want slot 12182", key, beside, Slot(beside))
			}
		}
	})
}
