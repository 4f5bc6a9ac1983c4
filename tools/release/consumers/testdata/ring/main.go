package main

import (
	"fmt"
	"log"

	"github.com/shardkit/shardkit/ring"
)

func main() {
	r, err := ring.New(ring.Nodes("a", "b", "c"), nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Locate("key"))
}
