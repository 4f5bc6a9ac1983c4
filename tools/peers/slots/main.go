package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/shardkit/shardkit/bench"
)

func main() {
	duration := flag.Duration("duration", time.Second, "how long to measure each set of keys")
	file := flag.String("json", "", "write a report to this `FILE`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	results, err := run(ctx, *duration)
	if len(results) > 0 {
		err = errors.Join(err, write(results, *file))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "slots:", strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(1)
	}
}

func run(ctx context.Context, duration time.Duration) ([]*bench.Result, error) {
	var results []*bench.Result
	for _, set := range keySets {
		r, err := bench.Run(ctx, set.scenario(), &bench.Options{Load: bench.Load{Duration: duration}, CountOps: 10})
		if r != nil {
			results = append(results, r)
		}
		if err != nil {
			return results, err
		}
	}
	return results, nil
}

// scenario times a pass over all keys as one operation: a single key takes less than looking at the clock.
func (s keySet) scenario() bench.Scenario {
	keys := s.keys()
	sc := bench.Scenario{Name: "slot-" + s.name, Doc: fmt.Sprintf("%d keys of %s bytes", len(keys), s.name)}
	if s.tagged {
		sc.Name += "-tagged"
		sc.Doc += ", all but six of them a hash tag"
	}
	want := Ours.All(keys)
	for _, p := range append([]Peer{Ours}, Others...) {
		sc.Variants = append(sc.Variants, bench.Func(p.Name, func(context.Context) error {
			// Looking at the outcome also keeps the work from being optimised away.
			if p.All(keys) != want {
				return errors.New("other slots than slotmap's")
			}
			return nil
		}))
	}
	return sc
}

func write(results []*bench.Result, file string) error {
	tab := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "KEYS\tNS A KEY\tTIMES SLOTMAP, 99 % INTERVAL\t\t")
	for _, r := range results {
		fmt.Fprintf(tab, "%s\t%.1f\t", strings.TrimPrefix(r.Scenario, "slot-"), float64(r.Variants[0].Response.P50)/speedKeys)
		for _, c := range r.Comparisons {
			if !c.Twin && c.Metric == "response_p50" {
				fmt.Fprintf(tab, "%s %.1f (%.1f to %.1f)\t", c.Variant, c.Ratio, c.Low, c.High)
			}
		}
		fmt.Fprintln(tab)
	}
	err := tab.Flush()
	if file != "" {
		err = errors.Join(err, bench.NewReport(results...).WriteJSON(file))
	}
	return err
}
