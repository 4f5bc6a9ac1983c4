package tcredis_test

import (
	"context"
	"fmt"
	"log"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/tcredis"
)

// A cluster of Valkey nodes with a replica each, in containers. It has no output, since it needs a Docker daemon.
func ExampleContainers() {
	ctx := context.Background()
	c, err := harness.StartCluster(ctx, harness.Options{
		Replicas:  1,
		Private:   true,
		Providers: []harness.Provider{tcredis.Containers(tcredis.Options{Image: "valkey/valkey:8.1"})},
	})
	if err != nil {
		log.Fatal(err) // harness.ErrNoServer: there is no Docker, or no image
	}
	defer c.Close()
	fmt.Println(c.Provider(), c.Addrs())
}
