package replset_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
)

func Example() {
	ctx := context.Background()
	backend := memory.New() // goredis.New(client) in a program
	active, err := replset.New(backend, "active", nil)
	if err != nil {
		panic(err)
	}
	// Whoever subscribed to channel 42, under the key that the application shards by.
	backend.Do(ctx, "subs:{42}", []string{"SADD", "subs:{42}", "ann", "ben", "cem"})

	if err := active.Publish(ctx, []string{"ann", "cem", "dan"}); err != nil {
		panic(err)
	}
	members, err := active.Intersect(ctx, "subs:{42}")
	slices.Sort(members)
	fmt.Println(members, err)

	if err := active.Apply(ctx, replset.Delta{Add: []string{"ben"}, Remove: []string{"ann"}}); err != nil {
		panic(err)
	}
	n, err := active.Count(ctx, "subs:{42}", 0)
	fmt.Println(n, err)
	// Output:
	// [ann cem] <nil>
	// 2 <nil>
}

// A list of what is forbidden must not let everything pass because it is gone.
func ExampleSet_Without() {
	ctx := context.Background()
	backend := memory.New()
	backend.Do(ctx, "subs:{42}", []string{"SADD", "subs:{42}", "ann", "ben"})
	blocked, err := replset.New(backend, "blocked", nil)
	if err != nil {
		panic(err)
	}
	_, err = blocked.Without(ctx, "subs:{42}")
	fmt.Println(errors.Is(err, replset.ErrReplicaMissing))

	if err := blocked.Publish(ctx, nil); err != nil { // nobody is blocked: that is an answer
		panic(err)
	}
	allowed, err := blocked.Without(ctx, "subs:{42}")
	slices.Sort(allowed)
	fmt.Println(allowed, err)
	// Output:
	// true
	// [ann ben] <nil>
}

// Several sets at once, in one round trip.
func ExampleFilter() {
	ctx := context.Background()
	backend := memory.New()
	slots := &replset.Options{Slots: []uint16{0}} // one slot will do for an example
	active, _ := replset.New(backend, "active", slots)
	blocked, _ := replset.New(backend, "blocked", slots)
	_ = active.Publish(ctx, []string{"ann", "ben", "cem"})
	_ = blocked.Publish(ctx, []string{"ben"})

	const key = "subs:{3560}" // lies in slot 0
	backend.Do(ctx, key, []string{"SADD", key, "ann", "ben", "eve"})
	members, err := replset.Filter(ctx, key, []*replset.Set{active}, []*replset.Set{blocked})
	fmt.Println(members, err)
	// Output: [ann] <nil>
}

// A write that did not reach every slot says which.
func ExampleWriteError() {
	ctx := context.Background()
	backend := memory.New()
	// Someone else's key stands where a replica belongs.
	backend.Do(ctx, "active:{42}", []string{"SET", "active:{42}", "theirs"})
	active, err := replset.New(backend, "active", nil)
	if err != nil {
		panic(err)
	}
	err = active.Publish(ctx, []string{"ann"})
	var partly *replset.WriteError
	if errors.As(err, &partly) {
		fmt.Println(partly.Written, "slots written")
		for _, failed := range partly.Failed {
			fmt.Println(failed.Slot, failed.Err)
		}
	}
	// Output:
	// 16383 slots written
	// 8000 replset: key "active:{42}" was not written by replset: choose another name, or set Options.Adopt to overwrite it
}
