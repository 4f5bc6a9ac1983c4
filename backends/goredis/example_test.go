package goredis_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/replset"
)

// Which of the subscribers in a sharded set are active.
func ExampleNew() {
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:                      []string{"127.0.0.1:7000"},
		ClusterStateReloadInterval: time.Second,
		ReadTimeout:                500 * time.Millisecond,
		WriteTimeout:               500 * time.Millisecond,
	})
	defer client.Close()
	active, err := replset.New(goredis.New(client), "active", nil)
	if err != nil {
		log.Fatal(err)
	}
	members, err := active.Intersect(context.Background(), "subs:{42}")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(members)
}
