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
		if err := users.Set(ctx, id, user{name, "7"}, tiercache.Tags("team:7")); err != nil {
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
	users, err := tiercache.New[user](map[string]tiercache.Shard{"a": memory.New(nil)}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer users.Close()
	byTeam := tiercache.TagsOf(func(u user) []string { return []string{"team:" + u.Team} })
	load := func(context.Context) (user, error) { return user{"Ada", "7"}, nil } // whose team it is, the database says
	if _, err := users.GetOrLoad(ctx, "user:1", load, byTeam); err != nil {
		fmt.Println(err)
	}
	fmt.Println(users.InvalidateTag(ctx, "team:7"))
	_, err = users.Get(ctx, "user:1")
	fmt.Println(err)
	// Output:
	// <nil>
	// tiercache: not found
}
