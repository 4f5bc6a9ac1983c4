package main

import (
	"fmt"

	"github.com/shardkit/shardkit/slotmap"
)

func main() { fmt.Println(slotmap.Slot("{42}"), slotmap.Tag(8000)) }
