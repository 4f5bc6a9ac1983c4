package tiercache_test

import (
	"context"
	"fmt"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

func ExampleTags() {
	ctx := context.Background()
	shards := map[string]tiercache.Shard{"a": memory.New(nil), "b": memory.New(nil)}
	users, err := tiercache.New[user](shards, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer users.Close()
	for id, name := range map[string]string{"user:1": "Ada", "user:2": "Bob"} {
		if err := users.Set(ctx, id, user{name}, tiercache.Tags("team:7")); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(users.InvalidateTag(ctx, "team:7")) // the team has another name
	for _, id := range []string{"user:1", "user:2"} {
		_, err := users.Get(ctx, id)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// tiercache: not found
	// tiercache: not found
}

func ExampleTagsOf() {
	ctx := context.Background()
	type order struct{ ID, Customer string }
	orders, err := tiercache.New[order](map[string]tiercache.Shard{"a": memory.New(nil)}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer orders.Close()
	byCustomer := tiercache.TagsOf(func(o order) []string { return []string{"customer:" + o.Customer} })
	load := func(context.Context) (order, error) { return order{"17", "ada"}, nil } // whose it is, the database says
	if _, err := orders.GetOrLoad(ctx, "order:17", load, byCustomer); err != nil {
		fmt.Println(err)
	}
	fmt.Println(orders.InvalidateTag(ctx, "customer:ada"))
	_, err = orders.Get(ctx, "order:17")
	fmt.Println(err)
	// Output:
	// <nil>
	// tiercache: not found
}
