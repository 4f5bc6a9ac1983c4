package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/tiercache"
)

func main() {
	ctx := context.Background()
	shards := map[string]tiercache.Shard{}
	for _, addr := range strings.Split(os.Getenv("SHARDS"), ",") {
		shards[addr] = goredis.NewShard(redis.NewClient(&redis.Options{Addr: addr}))
	}
	cache, err := tiercache.New[[]string](shards, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer cache.Close()
	if err := cache.Set(ctx, "members", []string{"ann"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cache.Get(ctx, "members"))
}
