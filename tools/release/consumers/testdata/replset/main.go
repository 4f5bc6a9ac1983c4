package main

import (
	"context"
	"fmt"
	"log"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
)

func main() {
	set, err := replset.New(memory.New(), "active", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := set.Publish(context.Background(), []string{"ann"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(set.Members(context.Background(), "subs:{42}"))
}
