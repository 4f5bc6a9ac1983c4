package bench_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/shardkit/shardkit/bench"
)

var text = strings.Repeat("a,", 200)

func split(context.Context) error {
	_ = strings.Split(text, ",")
	return nil
}

func splitSeq(context.Context) error {
	for part := range strings.SplitSeq(text, ",") {
		_ = part
	}
	return nil
}

// Two variants of an operation, one at a time.
func ExampleRun() {
	s := bench.Scenario{
		Name:     "split",
		Doc:      "201 parts",
		Variants: []bench.Variant{bench.Func("slice", split), bench.Func("iterator", splitSeq)},
	}
	res, err := bench.Run(context.Background(), s, &bench.Options{Load: bench.Load{Ops: 3000, WarmUp: 100 * time.Millisecond}})
	if err != nil {
		log.Fatal(err)
	}
	for _, v := range res.Variants {
		fmt.Printf("%s: %d operations, %.0f allocations each\n", v.Name, v.Response.Count, v.Counters[bench.AllocsPerOp])
	}
	// res.WriteTable(os.Stdout) shows it all.

	// Output:
	// slice: 1000 operations, 1 allocations each
	// iterator: 1000 operations, 0 allocations each
	// slice': 1000 operations, 1 allocations each
}

// A fixed rate, a mix of two kinds, and a report of whatever was measured before an interruption.
func ExampleRun_openLoop() {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	mixed := bench.Variant{Name: "mixed", Setup: func(ctx context.Context, workers int) (*bench.Subject, error) {
		// Connect here, once for each worker or once for all.
		return &bench.Subject{
			Kinds: []bench.Kind{
				{Name: "get", Weight: 9, Worker: func(worker int) (bench.Op, error) { return split, nil }},
				{Name: "set", Weight: 1, Worker: func(worker int) (bench.Op, error) { return splitSeq, nil }},
			},
			TearDown: func(ctx context.Context) error { return nil },
		}, nil
	}}
	s := bench.Scenario{Name: "mix", Variants: []bench.Variant{mixed}}
	res, err := bench.Run(ctx, s, &bench.Options{Load: bench.Load{Mode: bench.Open, Rate: 2000, Duration: time.Minute}})
	if err != nil && !errors.Is(err, bench.ErrInterrupted) {
		log.Fatal(err)
	}
	fmt.Println("interrupted:", errors.Is(err, bench.ErrInterrupted), "partial:", res.Is(bench.Partial))
	if err := bench.NewReport(res).WriteJSON(os.DevNull); err != nil {
		log.Fatal(err)
	}

	// Output:
	// interrupted: true partial: true
}
