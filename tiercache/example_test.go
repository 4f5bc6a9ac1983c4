package tiercache_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

type user struct{ Name string }

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
		return user{"Ada"}, nil
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
