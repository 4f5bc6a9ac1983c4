package shard

import (
	"context"
	"log"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/tiercache"
)

// The adapters' READMEs show these. Their own modules do not require tiercache, so that it does not come along with them.

// A cache on one Redis server. More are more entries of the map.
func Example_goredis() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	names, err := tiercache.New[string](map[string]tiercache.Shard{"a": goredis.NewShard(client)}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer names.Close()
	if err := names.Set(context.Background(), "user:42", "Ada"); err != nil {
		log.Fatal(err)
	}
}

// A cache on one Redis server. More are more entries of the map.
func Example_rueidis() {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{"127.0.0.1:6379"},
		ForceSingleClient: true,
		ConnWriteTimeout:  500 * time.Millisecond,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	shard, err := rueidisbackend.NewShard(client)
	if err != nil {
		log.Fatal(err)
	}
	names, err := tiercache.New[string](map[string]tiercache.Shard{"a": shard}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer names.Close()
	if err := names.Set(context.Background(), "user:42", "Ada"); err != nil {
		log.Fatal(err)
	}
}
