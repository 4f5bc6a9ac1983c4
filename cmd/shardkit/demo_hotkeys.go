package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
)

type demoHotkeysCmd struct {
	Duration time.Duration `help:"How long each way is measured." default:"2s"`
	JSON     bool          `name:"json" help:"Print one JSON object, with no words around it."`
}

func (demoHotkeysCmd) Help() string {
	return `The shares are what the servers themselves counted.

Examples:
  shardkit demo hotkeys
  shardkit demo hotkeys --json`
}

// Validate reports what is wrong with the command line.
func (c *demoHotkeysCmd) Validate() error {
	if c.Duration < 100*time.Millisecond || c.Duration > time.Minute {
		return fmt.Errorf("--duration is %v: give 100ms to 1m", c.Duration)
	}
	return nil
}

const (
	hotShards   = 5
	hotPrograms = 3
	hotReaders  = 4 // in each program
	hotKeys     = 2000
	hotZipf     = 1.5
	hotWrites   = 200
)

// hotFound is what came of it.
type hotFound struct {
	Key    string    `json:"key"`    // that is read most
	Shards []string  `json:"shards"` // between which its reads are spread, its owner first
	Load   []hotLoad `json:"load"`
	Writes int       `json:"writes"`
	Old    int       `json:"oldAfterWrite"` // reads by the other programs, after a write of the key, that gave what it replaced
}

// hotLoad is a shard's part of all commands, from 0 to 1.
type hotLoad struct {
	Shard string  `json:"shard"`
	Alone float64 `json:"withoutCopies"`
	With  float64 `json:"withCopies"`
}

func (c demoHotkeysCmd) Run(ctx context.Context, con console) (err error) {
	say := func(format string, args ...any) {
		if !c.JSON {
			fmt.Fprintf(con.out, format+"\n", args...)
		}
	}
	start := time.Now()
	servers, err := harness.StartShards(ctx, harness.Options{Private: true, Shards: hotShards})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.Close()) }()
	say("%d Redis servers, %s, ready in %s.", hotShards, servedBy(servers.Provider()), seconds(time.Since(start)))
	say("\n%d programs with %d readers each ask for %s keys, a few of them very often (Zipf, %v). None keeps a value itself.",
		hotPrograms, hotReaders, thousands(hotKeys), hotZipf)
	found, err := c.measure(ctx, servers.Addrs())
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("demo: interrupted")
		}
		return err
	}
	if c.JSON {
		return json.NewEncoder(con.out).Encode(found)
	}
	say("Each shard's part of the commands:\n")
	if err := found.write(con); err != nil {
		return err
	}
	say("\nOf %s, which is read most, %s hold copies for two seconds at a time. A write goes to its owner,", found.Key, and(found.Shards[1:]))
	say("then the copies are deleted, and then it returns: of %s writes, %d were followed by an old value.", thousands(found.Writes), found.Old)
	return nil
}

func and(names []string) string {
	switch len(names) {
	case 0:
		return "no shards"
	case 1:
		return names[0]
	}
	return names[0] + " and " + names[1]
}

func (c demoHotkeysCmd) measure(ctx context.Context, addrs []string) (*hotFound, error) {
	found := &hotFound{Writes: hotWrites}
	var shares [2][]float64
	for i, reads := range []int{-1, 0} { // no key is hot; the default
		programs, end, err := openCaches(addrs, hotPrograms, &tiercache.Options{LocalBytes: -1, HotReads: reads})
		if err != nil {
			return nil, err
		}
		err = func() error {
			for n := range hotKeys {
				if err := programs[0].Set(ctx, hotKey(n), 0); err != nil {
					return err
				}
			}
			soon := time.Second
			if reads < 0 {
				soon = 0
			}
			shares[i], err = c.read(ctx, programs, addrs, soon)
			if err != nil || reads < 0 {
				return err
			}
			hot := programs[0].HotKeys()
			if len(hot) == 0 {
				return errors.New("demo: no key became hot: the machine is too slow for this one")
			}
			found.Key, found.Shards = hot[0].Key, hot[0].Shards
			return found.writeAndRead(ctx, programs)
		}()
		if err = errors.Join(err, end()); err != nil {
			return nil, err
		}
	}
	for i := range addrs {
		found.Load = append(found.Load, hotLoad{shardName(i), shares[0][i], shares[1][i]})
	}
	return found, nil
}

func hotKey(n int) string    { return fmt.Sprint("item:", n) }
func shardName(i int) string { return fmt.Sprint("shard-", i+1) }

// openCaches returns caches on the same shards, each with clients of its own, as
// programs have them.
func openCaches(addrs []string, n int, o *tiercache.Options) (caches []*tiercache.Cache[int], end func() error, err error) {
	var ends []func() error
	end = func() (err error) {
		for _, f := range slices.Backward(ends) {
			err = errors.Join(err, f())
		}
		return err
	}
	for range n {
		shards := map[string]tiercache.Shard{}
		for i, addr := range addrs {
			s, done, err := openShard(clientGoredis, redis.Options{
				Addr: addr, DialTimeout: 500 * time.Millisecond, DialerRetries: 1, ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
			})
			if err != nil {
				return nil, nil, errors.Join(err, end())
			}
			shards[shardName(i)], ends = s, append(ends, done)
		}
		cache, err := tiercache.New[int](shards, o)
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		caches, ends = append(caches, cache), append(ends, cache.Close)
	}
	return caches, end, nil
}

// read lets all readers read, first until keys have become hot, which takes less than
// soon, then for as long as is measured, and returns each server's part of the
// commands of that time.
func (c demoHotkeysCmd) read(ctx context.Context, programs []*tiercache.Cache[int], addrs []string, soon time.Duration) ([]float64, error) {
	reading, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var failed atomic.Pointer[error]
	for p, cache := range programs {
		for r := range hotReaders {
			wg.Go(func() {
				zipf := rand.NewZipf(rand.New(rand.NewPCG(uint64(p), uint64(r))), hotZipf, 1, hotKeys-1)
				for reading.Err() == nil {
					if _, err := cache.Get(ctx, hotKey(int(zipf.Uint64()))); err != nil {
						failed.Store(&err)
						return
					}
				}
			})
		}
	}
	if err := pause(ctx, soon); err != nil {
		return nil, err
	}
	before, err := served(ctx, addrs)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, c.Duration); err != nil {
		return nil, err
	}
	after, err := served(ctx, addrs)
	if err != nil {
		return nil, err
	}
	stop()
	wg.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	sum := 0.0
	for i := range after {
		after[i] -= before[i]
		sum += after[i]
	}
	for i := range after {
		after[i] /= sum
	}
	return after, nil
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// served is how many commands each server says that it has served.
func served(ctx context.Context, addrs []string) ([]float64, error) {
	var counts []float64
	for _, addr := range addrs {
		client := redis.NewClient(&redis.Options{Addr: addr})
		info, err := client.Info(ctx, "stats").Result()
		client.Close()
		if err != nil {
			return nil, err
		}
		n, err := strconv.ParseFloat(infoFields(info)["total_commands_processed"], 64)
		if err != nil {
			return nil, fmt.Errorf("demo: INFO of %s: %w", addr, err)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// writeAndRead writes the hottest key again and again, and lets the other programs read
// it after each write.
func (f *hotFound) writeAndRead(ctx context.Context, programs []*tiercache.Cache[int]) error {
	for version := 1; version <= f.Writes; version++ {
		if err := programs[0].Set(ctx, f.Key, version); err != nil {
			return err
		}
		old := false
		for _, other := range programs[1:] {
			for range hotCopies + 1 { // in turn from its owner and the copies
				v, err := other.Get(ctx, f.Key)
				if err != nil {
					return err
				}
				old = old || v < version
			}
		}
		if old {
			f.Old++
		}
	}
	return nil
}

// hotCopies is how many copies of a hot key there are.
const hotCopies = 2

func (f *hotFound) write(con console) error {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-8s  %-*s  %-s\n", "", 8+barWidth, "no copies", "copies of hot keys")
	bar := func(v float64) string {
		return fmt.Sprintf("%s  %-*s", percentOf(v), barWidth, strings.Repeat("#", int(barWidth*v+0.5)))
	}
	highest := hotLoad{}
	for _, l := range f.Load {
		role := ""
		switch slices.Index(f.Shards, l.Shard) {
		case -1:
		case 0:
			role = "owns " + f.Key
		default:
			role = "copies of " + f.Key
		}
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("  %-8s  %s  %s  %s", l.Shard, bar(l.Alone), bar(l.With), role), " "))
		highest.Alone, highest.With = max(highest.Alone, l.Alone), max(highest.With, l.With)
	}
	fmt.Fprintf(&b, "  %-8s  %-*s  %-*s  %s if all were alike\n", "most", 8+barWidth, percentOf(highest.Alone), 8+barWidth, percentOf(highest.With), percentOf(1/float64(len(f.Load))))
	_, err := io.WriteString(con.out, b.String())
	return err
}

func percentOf(v float64) string { return fmt.Sprintf("%4.1f %%", 100*v) }
