package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/ring"
)

type demoRemapCmd struct {
	Keys int  `help:"Number of keys." default:"20000"`
	JSON bool `name:"json" help:"Print one JSON object, with no words around it."`
}

func (demoRemapCmd) Help() string {
	return `The keys are written to servers that the command starts, and looked for where they should be after a change: no figure
is computed from a formula but the one that is called least.

Examples:
  shardkit demo remap
  shardkit demo remap --keys 100000 --json`
}

// Validate reports what is wrong with the command line.
func (c *demoRemapCmd) Validate() error {
	if c.Keys < 100 || c.Keys > 1_000_000 {
		return fmt.Errorf("--keys is %d: give 100 to 1000000", c.Keys)
	}
	return nil
}

// remapDemo is three shards and a fourth, and two ways to place keys on them.
type remapDemo struct {
	keys    int
	clients map[string]*redis.Client
}

// placing is a way to place keys: for each set of shards, which has a key.
type placing struct {
	name  string
	owner func(shards []string) (func(key string) string, error)
}

var placings = []placing{
	{"ring", func(shards []string) (func(string) string, error) {
		r, err := ring.New(ring.Nodes(shards...), nil)
		if err != nil {
			return nil, err
		}
		return r.Locate, nil
	}},
	{"modulo", func(shards []string) (func(string) string, error) {
		return func(key string) string {
			h := fnv.New64a()
			h.Write([]byte(key))
			return shards[h.Sum64()%uint64(len(shards))]
		}, nil
	}},
}

// remapped is what a change of the shards did.
type remapped struct {
	Change string       `json:"change"`
	Least  float64      `json:"least"` // of the keys, that any way loses which uses all shards alike
	Ways   []remapCount `json:"ways"`
}

type remapCount struct {
	Way   string `json:"way"`
	Found int    `json:"found"` // of the keys, where they are looked for after the change
	Lost  int    `json:"lost"`

	// Needless counts the lost keys that moved between two shards which were there before and are there after.
	Needless int `json:"needless"`
}

func (c demoRemapCmd) Run(ctx context.Context, con console) (err error) {
	say := func(format string, args ...any) {
		if !c.JSON {
			fmt.Fprintf(con.out, format+"\n", args...)
		}
	}
	start := time.Now()
	servers, err := harness.StartShards(ctx, harness.Options{Private: true, Shards: 4})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	say("Four Redis servers, %s, ready in %s.", servedBy(servers.Provider()), seconds(time.Since(start)))
	d := remapDemo{c.Keys, map[string]*redis.Client{}}
	for i, addr := range servers.Addrs() {
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		d.clients[fmt.Sprint("shard-", i+1)] = client
	}
	three := []string{"shard-1", "shard-2", "shard-3"}
	four := append(slices.Clone(three), "shard-4")
	var told []remapped
	for _, change := range []struct {
		words, heading string
		before, after  []string
		least          float64
	}{
		{"a fourth shard", "Three shards, and a fourth is added", three, four, 1.0 / 4},
		{"a shard fewer", "Four shards, and one of them is taken away", four, []string{"shard-1", "shard-3", "shard-4"}, 1.0 / 4},
	} {
		r, err := d.change(ctx, change.before, change.after)
		if err != nil {
			if ctx.Err() != nil {
				return errors.New("demo: interrupted")
			}
			return err
		}
		r.Change, r.Least = change.words, change.least
		told = append(told, r)
		if c.JSON {
			continue
		}
		say("\n%s. %s keys were written; now they are looked for:\n", change.heading, thousands(c.Keys))
		if err := r.write(con, c.Keys); err != nil {
			return err
		}
	}
	if c.JSON {
		return json.NewEncoder(con.out).Encode(struct {
			Keys    int        `json:"keys"`
			Changes []remapped `json:"changes"`
		}{c.Keys, told})
	}
	say("\nWhat is lost is read from the database again, all at once. The ring moves a key to a shard that is new, or from\none that is gone: never between two that stay.")
	return nil
}

// change writes the keys where each way puts them before, and looks for them where it does after.
func (d remapDemo) change(ctx context.Context, before, after []string) (remapped, error) {
	var r remapped
	for _, way := range placings {
		was, err := way.owner(before)
		if err != nil {
			return r, err
		}
		is, err := way.owner(after)
		if err != nil {
			return r, err
		}
		for _, client := range d.clients {
			if err := client.FlushAll(ctx).Err(); err != nil {
				return r, err
			}
		}
		if _, err := d.each(ctx, was, func(pipe redis.Pipeliner, key string) { pipe.Set(ctx, key, "v", 0) }); err != nil {
			return r, err
		}
		found, err := d.each(ctx, is, func(pipe redis.Pipeliner, key string) { pipe.Exists(ctx, key) })
		if err != nil {
			return r, err
		}
		n := remapCount{Way: way.name}
		for i, there := range found {
			if there {
				n.Found++
				continue
			}
			n.Lost++
			if slices.Contains(after, was(keyOf(i))) && slices.Contains(before, is(keyOf(i))) {
				n.Needless++
			}
		}
		if way.name == placings[0].name && n.Needless > 0 {
			return r, fmt.Errorf("demo: the ring moved %d keys between shards that stayed, which it never should", n.Needless)
		}
		r.Ways = append(r.Ways, n)
	}
	return r, nil
}

func keyOf(i int) string { return fmt.Sprint("user:", i) }

// each gives every key's command to its shard, and tells for which the answer was 1.
func (d remapDemo) each(ctx context.Context, owner func(string) string, do func(redis.Pipeliner, string)) ([]bool, error) {
	byShard := map[string][]int{}
	for i := range d.keys {
		at := owner(keyOf(i))
		byShard[at] = append(byShard[at], i)
	}
	ones := make([]bool, d.keys)
	for at, numbers := range byShard {
		for some := range slices.Chunk(numbers, 1000) {
			cmds, err := d.clients[at].Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, i := range some {
					do(pipe, keyOf(i))
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			for n, cmd := range cmds {
				if v, ok := cmd.(*redis.IntCmd); ok && v.Val() == 1 {
					ones[some[n]] = true
				}
			}
		}
	}
	return ones, nil
}

func (r remapped) write(con console, keys int) error {
	percent := func(n int) string { return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(keys)) }
	tab := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "\tfound\tlost\t\tmoved between shards that stay\t")
	for _, w := range r.Ways {
		fmt.Fprintf(tab, "  %s\t%s\t%s\t%s\t%s\t%s\n", w.Way, thousands(w.Found), thousands(w.Lost), percent(w.Lost), thousands(w.Needless), share(w.Lost, keys))
	}
	fmt.Fprintf(tab, "  least\t\t\t%.1f %%\t\t%s\n", 100*r.Least, share(int(r.Least*float64(keys)), keys))
	return tab.Flush()
}

// share draws a part of a whole.
func share(n, of int) string { return "  " + strings.Repeat("#", (barWidth*n+of/2)/of) }
