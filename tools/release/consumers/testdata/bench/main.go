package main

import (
	"context"
	"fmt"
	"log"

	"github.com/shardkit/shardkit/bench"
)

func main() {
	s := bench.Scenario{Name: "nothing", Variants: []bench.Variant{
		bench.Func("nothing", func(context.Context) error { return nil }),
	}}
	res, err := bench.Run(context.Background(), s, &bench.Options{Load: bench.Load{Ops: 10_000}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Variants[0].Name)
}
