package rueidisbackend_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/rueidis"

	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/replset"
)

// Which of the subscribers in a sharded set are active.
func Example() {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:      []string{"127.0.0.1:7000"},
		ConnWriteTimeout: 500 * time.Millisecond,
		ClusterOption:    rueidis.ClusterOption{ShardsRefreshInterval: time.Second},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	backend, err := rueidisbackend.New(client)
	if err != nil {
		log.Fatal(err)
	}
	active, err := replset.New(backend, "active", nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if err := active.Publish(ctx, []string{"ann", "bob"}); err != nil {
		log.Fatal(err)
	}
	members, err := active.Intersect(ctx, "subs:{42}")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(members)
}
