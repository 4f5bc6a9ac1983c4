package soak_test

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/shardkit/shardkit/tiercache/soak"
)

func Example() {
	ctx := context.Background()
	soak.Main() // first in main: this program may be one of the processes
	history, err := soak.Run(ctx, &soak.Options{Seed: 1, Duration: time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	report := soak.Check(history)
	soak.WriteText(os.Stdout, report)
}
