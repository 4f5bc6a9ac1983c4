package slotmap

import "testing"

func TestAllocations(t *testing.T) {
	key, raw := "subs:{1234567890}:pending", []byte("subs:{1234567890}:pending")
	untagged := "a key without any tag, of more than thirty-two bytes"
	same := []string{key, KeyFor("active", key)}
	dst := make([]byte, 0, 64)
	var (
		slot uint16
		text string
		part []byte
		ok   bool
		err  error
	)
	for _, c := range []struct {
		name string
		want float64
		call func()
	}{
		{"Slot", 0, func() { slot = Slot(key) }},
		{"Slot untagged", 0, func() { slot = Slot(untagged) }},
		{"SlotBytes", 0, func() { slot = SlotBytes(raw) }},
		{"HashTag", 0, func() { text = HashTag(key) }},
		{"HashTagBytes", 0, func() { part = HashTagBytes(raw) }},
		{"Tag", 0, func() { text = Tag(16383) }},
		{"KeyFor", 1, func() { text = KeyFor("active", key) }},
		{"KeyForSlot", 1, func() { text = KeyForSlot("active", 4897) }},
		{"AppendKeyFor", 0, func() { part = AppendKeyFor(dst[:0], "active", 4897) }},
		{"ValidName", 0, func() { err = ValidName("active") }},
		{"SameSlot", 0, func() { ok = SameSlot(same...) }},
		{"SameSlot with a list", 0, func() { ok = SameSlot(key, untagged) }},
		{"CheckSameSlot", 0, func() { err = CheckSameSlot(key, key) }},
	} {
		if got := testing.AllocsPerRun(100, c.call); got != c.want {
			t.Errorf("%s: got %v allocations, want %v", c.name, got, c.want)
		}
	}
	_, _, _, _, _ = slot, text, part, ok, err
}
