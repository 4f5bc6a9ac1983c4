package prop

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/prop"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/slotmap"
)

var slotCases = []conformance.Case{
	{
		ID: "PR-001", Name: "no-smaller-tag", Profile: conformance.Slots, Level: conformance.Core, Tier: conformance.Property,
		Requirement: "no non-negative decimal integer that hashes to a slot is smaller than the slot's tag, and the tag hashes to it",
		Run:         noSmallerTag,
	},
	{
		ID: "PR-002", Name: "beside-its-key", Profile: conformance.Slots, Level: conformance.Core, Tier: conformance.Property,
		Requirement: "whatever braces a key has, the replica of a set that may be named so lies in the key's slot, and a set's name may have no brace",
		Run: func(t *conformance.T) {
			besideItsKey(t, fewer(20_000, 40), func(keys ...string) []uint16 {
				slots := make([]uint16, len(keys))
				for i, key := range keys {
					slots[i] = crc(tag(key)) % slotmap.Slots
				}
				return slots
			})
		},
	},
	{
		ID: "PR-003", Name: "beside-its-key-on-the-server", Profile: conformance.Slots, Level: conformance.Core, Tier: conformance.Live,
		Requirement: "the same by what CLUSTER KEYSLOT answers",
		Run: func(t *conformance.T) {
			besideItsKey(t, fewer(4000, 40), func(keys ...string) []uint16 {
				cmds := make([][]string, len(keys))
				for i, key := range keys {
					cmds[i] = []string{"CLUSTER", "KEYSLOT", key}
				}
				slots := make([]uint16, len(keys))
				for i, v := range t.Ask("x", cmds...) {
					slot, ok := v.(int64)
					if !ok {
						t.Broken("CLUSTER KEYSLOT %q: %v", keys[i], v)
					}
					slots[i] = uint16(slot)
				}
				return slots
			})
		},
	},
}

func noSmallerTag(t *conformance.T) {
	tr := newTrial(t, fewer(200_000, 40), 1)
	tr.check(prop.ForAll(func(n int) string {
		if tr.over() {
			return ""
		}
		tr.done.Add(1)
		slot := crc(strconv.Itoa(n)) % slotmap.Slots
		got := t.SlotFuncs().Tag(slot)
		if smallest, err := strconv.Atoi(got); err != nil || smallest < 0 || smallest > n || strconv.Itoa(smallest) != got || crc(got)%slotmap.Slots != slot {
			return fmt.Sprintf("Tag(%d) is %q, and %d hashes to it", slot, got, n)
		}
		return ""
	}, generator(func(p *gopter.GenParameters) int { return p.Rng.Intn(1 << 17) }, func(n int) []int { return []int{n / 2, n - 1}[:min(n, 2)] })))
}

// beside is a key and a set's name.
type beside struct{ key, name string }

func (b beside) String() string { return fmt.Sprintf("key %q, name %q", b.key, b.name) }

func besideItsKey(t *conformance.T, tries int, slotsOf func(keys ...string) []uint16) {
	tr := newTrial(t, tries, 30)
	gen := generator(func(p *gopter.GenParameters) beside {
		return beside{randomText(p, "{}"), randomText(p, "")}
	}, func(b beside) (smaller []beside) {
		for _, key := range shorter(b.key) {
			smaller = append(smaller, beside{key, b.name})
		}
		for _, name := range shorter(b.name) {
			smaller = append(smaller, beside{b.key, name})
		}
		return smaller
	})
	tr.check(prop.ForAll(func(b beside) string {
		if tr.over() {
			return ""
		}
		tr.done.Add(1)
		f := t.SlotFuncs()
		replica := f.KeyFor(b.name, b.key)
		slots := slotsOf(b.key, replica)
		switch {
		case f.Slot(b.key) != slots[0]:
			return fmt.Sprintf("Slot is %d, want %d", f.Slot(b.key), slots[0])
		case slots[1] != slots[0]:
			return fmt.Sprintf("KeyFor is %q in slot %d, want slot %d", replica, slots[1], slots[0])
		case f.Slot(replica) != slots[1]:
			return fmt.Sprintf("Slot(%q) is %d, want %d", replica, f.Slot(replica), slots[1])
		case slotmap.ValidName(b.name) == nil != (b.name != ""):
			return fmt.Sprintf("ValidName: %v", slotmap.ValidName(b.name))
		}
		for _, brace := range []string{"{", "}"} {
			if slotmap.ValidName(b.name+brace) == nil {
				return fmt.Sprintf("ValidName takes %q", b.name+brace)
			}
		}
		return ""
	}, gen))
}

// randomText is up to as many bytes as the size says, many of them of those given.
func randomText(p *gopter.GenParameters, often string) string {
	var b strings.Builder
	for range p.Rng.Intn(p.MaxSize + 2) {
		switch n := p.Rng.Intn(4); {
		case n < 2 && often != "":
			b.WriteByte(often[p.Rng.Intn(len(often))])
		case n == 3:
			c := byte(p.Rng.Intn(256))
			if c == '{' || c == '}' {
				c = 'x' // braces come from often alone
			}
			b.WriteByte(c)
		default:
			b.WriteByte("ab:"[p.Rng.Intn(3)])
		}
	}
	return b.String()
}

// shorter returns s without each of its bytes.
func shorter(s string) []string {
	list := make([]string, len(s))
	for i := range s {
		list[i] = s[:i] + s[i+1:]
	}
	return list
}

// tag is what of a key is hashed: between the first { and the first } after it, if there is anything.
func tag(key string) string {
	for open := range len(key) {
		if key[open] != '{' {
			continue
		}
		for end := open + 1; end < len(key); end++ {
			if key[end] == '}' {
				if end == open+1 {
					return key
				}
				return key[open+1 : end]
			}
		}
		return key
	}
	return key
}

// crc is CRC-16/XMODEM as polynomial division, a bit at a time.
func crc(s string) uint16 {
	var remainder uint32
	for _, b := range append([]byte(s), 0, 0) {
		for bit := 7; bit >= 0; bit-- {
			remainder = remainder<<1 | uint32(b>>bit&1)
			if remainder&0x10000 != 0 {
				remainder ^= 0x11021
			}
		}
	}
	return uint16(remainder)
}
