package main

import (
	"context"
	"fmt"
	"log"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

func main() {
	cache, err := tiercache.New[string](map[string]tiercache.Shard{"a": memory.New(nil)}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	if err := cache.Set(context.Background(), "k", "v"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cache.Get(context.Background(), "k"))
}
