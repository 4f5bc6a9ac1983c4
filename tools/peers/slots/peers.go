package main

import "github.com/shardkit/shardkit/slotmap"

// Peer is one implementation of the slot rule.
type Peer struct {
	Name string
	Slot func(key string) uint16
	// All calls the function once for each key and returns the exclusive or of the slots. It calls it directly, as users do:
	// through Slot, the indirect call would be a good part of what is measured.
	All func(keys []string) uint16
}

// Ours is slotmap.
var Ours = Peer{
	Name: "slotmap",
	Slot: slotmap.Slot,
	All: func(keys []string) (slots uint16) {
		for _, key := range keys {
			slots ^= slotmap.Slot(key)
		}
		return slots
	},
}

// Others are the clients. go-redis answers a random slot for the empty key; the server says 0.
var Others = []Peer{
	{
		Name: "go-redis",
		Slot: func(key string) uint16 { return uint16(goredisSlot(key)) },
		All: func(keys []string) (slots uint16) {
			for _, key := range keys {
				slots ^= uint16(goredisSlot(key))
			}
			return slots
		},
	},
	{
		Name: "rueidis",
		Slot: rueidisSlot,
		All: func(keys []string) (slots uint16) {
			for _, key := range keys {
				slots ^= rueidisSlot(key)
			}
			return slots
		},
	},
}
