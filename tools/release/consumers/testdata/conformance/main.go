package main

import (
	"context"
	"fmt"
	"log"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
)

func main() {
	report, err := conformance.Execute(context.Background(), conformance.Target{
		Name: "mine", Serverless: true,
		Backend: func(context.Context, conformance.Connection) (replset.Backend, func(), error) {
			return memory.New(), func() {}, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(report.Cases) > 30, report.Validate())
}
