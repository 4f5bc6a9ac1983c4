package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

type demoFailoverCmd struct {
	JSON bool `name:"json" help:"Print one JSON object, with no words around it."`
}

func (demoFailoverCmd) Help() string {
	return `Two programs share three shards. One shard is killed, and comes back with the data that it had.

Examples:
  shardkit demo failover
  shardkit demo failover --json`
}

// failedOver is what happened, times in ms since the fault.
type failedOver struct {
	Keys   int `json:"keys"`
	Victim int `json:"keysOfTheShard"`

	OutAfter     int64 `json:"outAfterMs"` // as both programs see it
	Tried        int   `json:"writesUntilThen"`
	Failed       int   `json:"writesFailedUntilThen"`
	TriedLater   int   `json:"writesWhileOut"`
	FailedLater  int   `json:"writesFailedWhileOut"`
	ServingAfter int64 `json:"servingAfterMs"` // since its server was started again

	New  int `json:"newValues"` // read by both programs when it serves again
	None int `json:"noValue"`
	Old  int `json:"oldValues"`
}

// demoPatience is for how long the demo waits for what should take a second or two.
const demoPatience = 10 * time.Second

func (c demoFailoverCmd) Run(ctx context.Context, con console) (err error) {
	say := func(format string, args ...any) {
		if !c.JSON {
			fmt.Fprintf(con.out, format+"\n", args...)
		}
	}
	start := time.Now()
	servers, err := harness.StartShards(ctx, harness.Options{Private: true, Shards: 3, Persist: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	say("Three Redis servers, %s, ready in %s.", servedBy(servers.Provider()), seconds(time.Since(start)))
	programs, end, err := openCaches(servers.Addrs(), 2, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	found, err := playFailover(ctx, servers, programs, say)
	switch {
	case ctx.Err() != nil:
		return errors.New("demo: interrupted")
	case err != nil:
		return err
	case c.JSON:
		return json.NewEncoder(con.out).Encode(found)
	}
	return nil
}

func playFailover(ctx context.Context, servers *harness.Shards, programs []*tiercache.Cache[int], say func(string, ...any)) (*failedOver, error) {
	const victim = 1 // of the shards
	f := &failedOver{Keys: 300}
	writer, reader := programs[0], programs[1]
	var keys []string // of the victim
	for i := range f.Keys {
		key := fmt.Sprint("user:", i)
		if writer.Ring().Locate(key) == shardName(victim) {
			keys = append(keys, key)
		}
		if err := writer.Set(ctx, key, 1); err != nil {
			return nil, err
		}
	}
	f.Victim = len(keys)
	for _, key := range keys { // and the reader holds them itself
		if _, err := reader.Get(ctx, key); err != nil {
			return nil, err
		}
	}
	say("\nOne program writes version 1 of %d keys; another one reads them. %d are on %s.", f.Keys, f.Victim, shardName(victim))

	if err := servers.Nodes()[victim].Kill(); err != nil {
		return nil, err
	}
	killed := time.Now()
	say("\n%s is killed. Version 2 of its keys is written meanwhile, again and again.", shardName(victim))
	for i := 0; !all(programs, victim, tiercache.ShardOut); i++ {
		f.Tried++
		if err := writer.Set(ctx, keys[i%len(keys)], 2); err != nil {
			f.Failed++
		}
		if err := waited(ctx, killed, "the shard to be out"); err != nil {
			return nil, err
		}
		if err := pause(ctx, 2*time.Millisecond); err != nil {
			return nil, err
		}
	}
	f.OutAfter = time.Since(killed).Milliseconds()
	say("  after %4d ms  both programs know that it is out; of %d writes till then %d failed", f.OutAfter, f.Tried, f.Failed)
	for _, key := range keys {
		f.TriedLater++
		if err := writer.Set(ctx, key, 2); err != nil {
			f.FailedLater++
		}
	}
	say("  from then on   others stand in for it: of %d writes %d failed", f.TriedLater, f.FailedLater)

	if err := servers.Nodes()[victim].Restart(ctx, harness.WithData); err != nil {
		return nil, err
	}
	back := time.Now()
	say("\n%s is started again, with version 1 of its keys.", shardName(victim))
	for !all(programs, victim, tiercache.ShardServing) {
		if err := waited(ctx, back, "the shard to serve"); err != nil {
			return nil, err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return nil, err
		}
	}
	f.ServingAfter = time.Since(back).Milliseconds()
	for _, program := range programs {
		for _, key := range keys {
			switch v, err := program.Get(ctx, key); {
			case errors.Is(err, tiercache.ErrNotFound):
				f.None++
			case err != nil:
				return nil, err
			case v == 1:
				f.Old++
			default:
				f.New++
			}
		}
	}
	say("  after %4d ms  it serves again: first each key that was written elsewhere was deleted there", f.ServingAfter)
	say("\nBoth programs read its %d keys: %d times version 2, %d times no value (to be loaded again), %d times version 1.", f.Victim, f.New, f.None, f.Old)
	return f, nil
}

// all reports whether all programs see the shard in the state.
func all(programs []*tiercache.Cache[int], shard int, state tiercache.ShardState) bool {
	for _, p := range programs {
		if p.Health()[shard].State != state {
			return false
		}
	}
	return true
}

func waited(ctx context.Context, since time.Time, what string) error {
	if ctx.Err() == nil && time.Since(since) > demoPatience {
		return fmt.Errorf("demo: waited %v for %s", demoPatience, what)
	}
	return ctx.Err()
}
