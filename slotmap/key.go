package slotmap

// KeyFor returns the key named name that lies in the slot of key: name + ":{" + Tag(Slot(key)) + "}". It allocates once.
//
// name must be valid, see [ValidName]: it is not checked again here, and a name with a brace of its own would land elsewhere.
func KeyFor(name, key string) string {
	return KeyForSlot(name, Slot(key))
}

// KeyForSlot is [KeyFor] for a slot number. It panics when slot is beyond 16383.
func KeyForSlot(name string, slot uint16) string {
	return name + ":{" + Tag(slot) + "}"
}

// AppendKeyFor appends [KeyForSlot](name, slot) to dst and returns the extended slice; it allocates only where dst lacks
// room. It panics when slot is beyond 16383.
func AppendKeyFor(dst []byte, name string, slot uint16) []byte {
	dst = append(dst, name...)
	dst = append(dst, ":{"...)
	dst = append(dst, Tag(slot)...)
	return append(dst, '}')
}
