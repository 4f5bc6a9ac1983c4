package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/shardkit/shardkit/harness"
)

func main() {
	shards, err := harness.StartShards(context.Background(), harness.Options{Addrs: strings.Split(os.Getenv("SHARDS"), ",")})
	if err != nil {
		log.Fatal(err)
	}
	defer shards.Close()
	fmt.Println(len(shards.Nodes()), "shards")
}
