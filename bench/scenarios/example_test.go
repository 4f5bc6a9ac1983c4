package scenarios_test

import (
	"context"
	"errors"
	"log"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/bench/scenarios"
)

// The example is compiled, and not run: it takes half a minute and a cluster.
func Example() {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:7000"}})
	defer client.Close()

	parts, err := scenarios.Select(false, "publish", "intersect-5000")
	if err != nil {
		log.Fatal(err)
	}
	results, err := scenarios.Run(context.Background(), parts, &scenarios.Target{Client: client},
		&scenarios.Options{Duration: 5 * time.Second})
	if err != nil && !errors.Is(err, bench.ErrInterrupted) {
		log.Fatal(err)
	}
	_ = scenarios.WriteSummary(os.Stdout, results)
	for _, r := range results {
		if c := r.Comparison("shardkit", "response_p50"); c != nil && c.Verdict == bench.Slower {
			log.Print(r.Scenario, ": ", c)
		}
	}
}
