package main

import (
	_ "unsafe" // for go:linkname

	_ "github.com/redis/go-redis/v9" // links internal/hashtag
	_ "github.com/redis/rueidis"     // links internal/cmds
)

//go:linkname goredisSlot github.com/redis/go-redis/v9/internal/hashtag.Slot
func goredisSlot(key string) int

//go:linkname rueidisSlot github.com/redis/rueidis/internal/cmds.slot
func rueidisSlot(key string) uint16
