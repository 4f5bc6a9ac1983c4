package tiercache_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// A user is the struct of other tests too: the compiler takes a second for a cache of each sort of value.
type user struct{ Name, Team string }

func Example() {
	ctx := context.Background()
	shards := map[string]tiercache.Shard{"a": memory.New(nil), "b": memory.New(nil)}
	users, err := tiercache.New[user](shards, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer users.Close()

	load := func(context.Context) (user, error) {
		fmt.Println("loading")
		return user{Name: "Ada"}, nil
	}
	for range 2 {
		u, err := users.GetOrLoad(ctx, "user:42", load)
		fmt.Println(u.Name, err)
	}
	fmt.Println(users.Delete(ctx, "user:42"))
	_, err = users.Get(ctx, "user:42")
	fmt.Println(errors.Is(err, tiercache.ErrNotFound))
	// Output:
	// loading
	// Ada <nil>
	// Ada <nil>
	// <nil>
	// true
}

// While the source fails, the value of before is given for an hour more; while it
// is slow, after 50 ms.
func ExampleOptions_staleFor() {
	ctx := context.Background()
	shards := map[string]tiercache.Shard{"a": memory.New(nil)}
	prices, err := tiercache.New[int](shards, &tiercache.Options{
		StaleFor:    time.Hour,
		SoftTimeout: 50 * time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer prices.Close()
	answer := func(v int, err error) tiercache.Loader[int] {
		return func(context.Context) (int, error) { return v, err }
	}
	for !prices.Stats().Shards[0].Synced { // before that L1 holds nothing
		time.Sleep(time.Millisecond)
	}
	fmt.Println(prices.GetOrLoad(ctx, "tea", answer(3, nil), tiercache.TTL(time.Millisecond)))
	time.Sleep(10 * time.Millisecond)
	fmt.Println(prices.GetOrLoad(ctx, "tea", answer(0, errors.New("no connection"))))
	// Output:
	// 3 <nil>
	// 3 <nil>
}

// Of all processes that miss a key, one loads it, and the others wait for that,
// for 2 s before another takes over. What is asked for in the last minute of its
// life is loaded behind, so nobody waits at all.
func ExampleOptions_fleetWait() {
	shards := map[string]tiercache.Shard{"a": memory.New(nil)}
	prices, err := tiercache.New[int](shards, &tiercache.Options{
		TTL:          10 * time.Minute,
		FleetWait:    2 * time.Second,
		RefreshAhead: time.Minute,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer prices.Close()
	fmt.Println(prices.GetOrLoad(context.Background(), "tea", func(context.Context) (int, error) { return 3, nil }))
	// Output: 3 <nil>
}

// A source that can say "not modified" is told what L1 still has.
func ExampleCache_GetOrReload() {
	ctx := context.Background()
	type page struct{ ETag, Body string }
	shards := map[string]tiercache.Shard{"a": memory.New(nil)}
	pages, err := tiercache.New[page](shards, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pages.Close()
	load := func(_ context.Context, old page, ok bool) (page, error) {
		if ok && old.ETag == "v1" {
			fmt.Println("304")
			return page{}, tiercache.ErrNotModified
		}
		fmt.Println("200")
		return page{"v1", "hello"}, nil
	}
	for !pages.Stats().Shards[0].Synced { // before that L1 holds nothing
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		p, err := pages.GetOrReload(ctx, "/", load, tiercache.TTL(time.Millisecond))
		fmt.Println(p.Body, err)
		time.Sleep(10 * time.Millisecond)
	}
	// Output:
	// 200
	// hello <nil>
	// 304
	// hello <nil>
}

func ExampleCache_GetMany() {
	ctx := context.Background()
	shards := map[string]tiercache.Shard{"a": memory.New(nil), "b": memory.New(nil)}
	prices, err := tiercache.New[int](shards, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer prices.Close()
	if err := prices.Set(ctx, "tea", 3, tiercache.TTL(time.Minute)); err != nil {
		fmt.Println(err)
	}
	values, err := prices.GetMany(ctx, []string{"tea", "milk", "gold"}, func(_ context.Context, missing []string) (map[string]int, error) {
		fmt.Println("loading", missing)
		return map[string]int{"milk": 2}, nil
	})
	fmt.Println(values, err)
	// Output:
	// loading [gold milk]
	// map[milk:2 tea:3] <nil>
}
