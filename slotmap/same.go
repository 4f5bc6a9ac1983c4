package slotmap

import (
	"strconv"
	"strings"
)

// SameSlot reports whether all keys lie in one slot; it is true for none and for one. It does not allocate.
func SameSlot(keys ...string) bool {
	return firstApart(keys) < 0
}

// CheckSameSlot returns nil when all keys lie in one slot, otherwise a [*CrossSlotError] that lists them. It allocates only
// for the error.
func CheckSameSlot(keys ...string) error {
	if firstApart(keys) < 0 {
		return nil
	}
	e := &CrossSlotError{Keys: make([]KeySlot, len(keys))}
	for i, key := range keys {
		e.Keys[i] = KeySlot{key, Slot(key)}
	}
	return e
}

// firstApart returns the index of the first key whose slot is not that of keys[0], or -1.
func firstApart(keys []string) int {
	if len(keys) < 2 {
		return -1
	}
	first := Slot(keys[0])
	for i, key := range keys[1:] {
		if Slot(key) != first {
			return i + 1
		}
	}
	return -1
}

// KeySlot is a key with its slot.
type KeySlot struct {
	Key  string
	Slot uint16
}

// CrossSlotError says that the keys of one command lie in different slots, which a Redis Cluster refuses with CROSSSLOT.
type CrossSlotError struct {
	Keys []KeySlot // all the keys that were checked, in the order given
}

// listLimit is how many keys a message lists; the error's field has them all.
const listLimit = 16

// Error lists each key, quoted and shortened, with its slot. Beyond 16 keys it lists the first 16, and the first that
// lies elsewhere.
func (e *CrossSlotError) Error() string {
	var b strings.Builder
	b.WriteString("slotmap: ")
	b.WriteString(strconv.Itoa(len(e.Keys)))
	b.WriteString(" keys in different slots: ")
	apart := 0
	for apart < len(e.Keys) && e.Keys[apart].Slot == e.Keys[0].Slot {
		apart++
	}
	listed := 0
	for i, k := range e.Keys {
		if i >= listLimit && i != apart {
			continue
		}
		if listed > 0 {
			b.WriteString(", ")
		}
		listed++
		b.WriteString(quote(k.Key))
		b.WriteString(" (slot ")
		b.WriteString(strconv.Itoa(int(k.Slot)))
		b.WriteString(")")
	}
	if more := len(e.Keys) - listed; more > 0 {
		b.WriteString(" and ")
		b.WriteString(strconv.Itoa(more))
		b.WriteString(" more")
	}
	b.WriteString("; the server compares slot numbers, not nodes, and refuses them (CROSSSLOT) even where one node owns both slots: " +
		"give the keys one hash tag, or keep a copy in the slot of the other key (KeyFor)")
	return b.String()
}
