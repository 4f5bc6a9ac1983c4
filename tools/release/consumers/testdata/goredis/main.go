package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/replset"
)

func main() {
	ctx := context.Background()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: strings.Split(os.Getenv("CLUSTER"), ",")})
	set, err := replset.New(goredis.New(client), "goredis", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := set.Publish(ctx, []string{"ann"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(set.Members(ctx, "subs:{42}"))
}
