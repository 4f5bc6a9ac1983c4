package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/redis/rueidis"

	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/replset"
)

func main() {
	ctx := context.Background()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: strings.Split(os.Getenv("CLUSTER"), ",")})
	if err != nil {
		log.Fatal(err)
	}
	backend, err := rueidisbackend.New(client)
	if err != nil {
		log.Fatal(err)
	}
	set, err := replset.New(backend, "rueidis", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := set.Publish(ctx, []string{"ann"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(set.Members(ctx, "subs:{42}"))
}
