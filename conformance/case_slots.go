package conformance

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/shardkit/shardkit/slotmap"
)

var slotCases = []Case{
	{
		ID: "SL-001", Name: "published-vectors", Profile: Slots, Level: Core, Tier: Contract,
		Requirement: "the slot is CRC16 (XMODEM) of the key modulo 16384: 12739 for 123456789, 12182 for foo, 0 for the empty key",
		Run: func(t *T) {
			for key, want := range map[string]uint16{"123456789": 0x31c3, "foo": 12182, "": 0, "bar": 5061} {
				if got := t.SlotFuncs().Slot(key); got != want {
					t.Errorf("Slot(%q) is %d, want %d", key, got, want)
				}
			}
		},
	},
	{
		ID: "SL-002", Name: "hash-tag", Profile: Slots, Level: Core, Tier: Contract,
		Requirement: "only what stands between the first { and the first } after it is hashed; the whole key where there is no such pair or nothing inside it",
		Run: func(t *T) {
			for _, key := range bracedKeys {
				if got, want := t.SlotFuncs().Slot(key), plainSlot(key); got != want {
					t.Errorf("Slot(%q) is %d, want %d, the slot of what is hashed, %q", key, got, want, plainTag(key))
				}
			}
		},
	},
	{
		ID: "SL-003", Name: "every-byte", Profile: Slots, Level: Core, Tier: Contract,
		Requirement: "keys are bytes: NUL, bytes that are no UTF-8 and keys of any length are hashed as they are",
		Run: func(t *T) {
			long := strings.Repeat("0123456789abcdef", 4096)
			keys := []string{long, long[:255], long[:256], long[:257], "\xff\xfe", "é", "e\u0301"}
			for b := range 256 {
				keys = append(keys, string([]byte{byte(b)}), string([]byte{'k', byte(b), 0, byte(b)}))
			}
			for _, key := range keys {
				if got, want := t.SlotFuncs().Slot(key), plainSlot(key); got != want {
					t.Fatalf("Slot of the %d bytes %.40q is %d, want %d", len(key), key, got, want)
				}
			}
		},
	},
	{
		ID: "SL-004", Name: "smallest-tags", Profile: Slots, Level: Core, Tier: Contract,
		Requirement: "a slot's tag is the smallest non-negative decimal integer that hashes to it, for all 16384 slots",
		Run: func(t *T) {
			var found [slotmap.Slots]bool
			for n, left := 0, slotmap.Slots; left > 0; n++ {
				digits := strconv.Itoa(n)
				slot := plainCRC(digits) % slotmap.Slots
				if found[slot] {
					continue
				}
				found[slot] = true
				left--
				if got := t.SlotFuncs().Tag(slot); got != digits {
					t.Fatalf("Tag(%d) is %q, and %q hashes to it", slot, got, digits)
				}
			}
		},
	},
	{
		ID: "SL-005", Name: "replica-beside-key", Profile: Slots, Level: Core, Tier: Contract,
		Requirement: "the replica's key for a sharded key lies in that key's slot, whatever braces the key has, and is the same for every key of the slot",
		Run: func(t *T) {
			byName := map[string]string{}
			for _, key := range bracedKeys {
				for _, name := range []string{"active", "a:b", " ", "\x00\xff"} {
					replica := t.SlotFuncs().KeyFor(name, key)
					if got, want := plainSlot(replica), plainSlot(key); got != want {
						t.Errorf("KeyFor(%q, %q) is %q in slot %d, want slot %d", name, key, replica, got, want)
					}
					id := fmt.Sprint(name, "/", plainSlot(key))
					if other, seen := byName[id]; seen && other != replica {
						t.Errorf("KeyFor(%q, ...) gives both %q and %q in slot %d", name, other, replica, plainSlot(key))
					}
					byName[id] = replica
				}
			}
		},
	},
	{
		ID: "SL-006", Name: "random-keys", Profile: Slots, Level: Core, Tier: Property,
		Requirement: "for random keys, full of braces and of bytes that are no text, the slot is that of the rule done step by step",
		Run: func(t *T) {
			rnd := t.Rand()
			for range 20_000 {
				key := randomKey(rnd)
				if got, want := t.SlotFuncs().Slot(key), plainSlot(key); got != want {
					t.Fatalf("Slot(%q) is %d, want %d", key, got, want)
				}
				if replica := t.SlotFuncs().KeyFor("active", key); plainSlot(replica) != plainSlot(key) {
					t.Fatalf("KeyFor(active, %q) is %q in slot %d, want %d", key, replica, plainSlot(replica), plainSlot(key))
				}
			}
		},
	},
	{
		ID: "SL-007", Name: "as-the-server", Profile: Slots, Level: Core, Tier: Live,
		Requirement: "the slot is what CLUSTER KEYSLOT answers, for keys with any braces and for random ones",
		Run: func(t *T) {
			rnd := t.Rand()
			keys := append([]string(nil), bracedKeys...)
			for range 5000 {
				keys = append(keys, randomKey(rnd))
			}
			askSlots(t, keys, func(key string) uint16 { return t.SlotFuncs().Slot(key) })
		},
	},
	{
		ID: "SL-008", Name: "replicas-as-the-server", Profile: Slots, Level: Core, Tier: Live,
		Requirement: "each of the 16384 replicas of a set lies in its slot, as the server counts",
		Run: func(t *T) {
			want := map[string]uint16{}
			keys := make([]string, slotmap.Slots)
			for slot := range uint16(slotmap.Slots) {
				keys[slot] = "active:{" + t.SlotFuncs().Tag(slot) + "}"
				want[keys[slot]] = slot
			}
			askSlots(t, keys, func(key string) uint16 { return want[key] })
		},
	},
}

// askSlots compares the server's slots of the keys.
func askSlots(t *T, keys []string, slot func(key string) uint16) {
	const chunk = 1000
	for from := 0; from < len(keys); from += chunk {
		some := keys[from:min(from+chunk, len(keys))]
		cmds := make([][]string, len(some))
		for i, key := range some {
			cmds[i] = []string{"CLUSTER", "KEYSLOT", key}
		}
		for i, v := range t.Ask("x", cmds...) {
			if want := slot(some[i]); v != int64(want) {
				t.Fatalf("the server puts %q in slot %v, want %d", some[i], v, want)
			}
		}
	}
}

// bracedKeys are those over which slot functions differ.
var bracedKeys = []string{
	"", "subs", "subs:{42}", "{42}", "{42}.subs", "{a}{b}", "}{a}", "{}", "{}{a}", "a{}b{c}", "{", "}", "}{", "{{", "}}",
	"subs:{42", "subs:42}", "{{a}}", "{{}", "{{}}", "{a{b}c}", "a{\x00\xff}b", "{ }", "long-name:{{}}}", "foo{}{bar}", "foo{{bar}}zap",
	"foo{bar}{zap}", "{user1000}.following", "a{b", "{a}}", "{}}", "{}a}", "a}b{c}d", "{\n}", "{é}",
}

// The rule transcribed from the specification, one step and one bit at a time, to compare with.

func plainTag(key string) string {
	_, after, opened := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(after, "}")
	if !opened || !closed || tag == "" {
		return key
	}
	return tag
}

func plainCRC(key string) uint16 {
	var crc uint16
	for i := range len(key) {
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

func plainSlot(key string) uint16 { return plainCRC(plainTag(key)) % slotmap.Slots }

// randomKey is 0 to 40 bytes, half of which are braces as a rule.
func randomKey(rnd *rand.Rand) string {
	b := make([]byte, rnd.IntN(41))
	braces := rnd.IntN(4)
	for i := range b {
		switch n := rnd.IntN(4); {
		case n < braces:
			b[i] = "{}"[rnd.IntN(2)]
		case n == 3:
			b[i] = byte(rnd.IntN(256))
		default:
			b[i] = "ab:"[rnd.IntN(3)]
		}
	}
	return string(b)
}
