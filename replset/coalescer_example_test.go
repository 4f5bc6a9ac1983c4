package replset_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
)

// Who is online changes all the time; the cluster hears of it four times a
// second.
func ExampleCoalescer() {
	ctx := context.Background()
	online, err := replset.New(memory.New(), "online", nil)
	if err != nil {
		panic(err)
	}
	if err := online.Publish(ctx, nil); err != nil { // nobody yet
		panic(err)
	}

	presence, err := replset.NewCoalescer(online, &replset.CoalescerOptions{
		Tick: 250 * time.Millisecond,
		OnFlush: func(s replset.FlushStats) {
			if s.Err != nil {
				fmt.Println("the next tick tries again:", s.Err)
			}
		},
	})
	if err != nil {
		panic(err)
	}
	connected := func(user string) { _ = presence.Add(user) } // the error is for a cluster that stays away
	disconnected := func(user string) { _ = presence.Remove(user) }

	connected("alice")
	connected("bob")
	connected("erin")
	disconnected("bob") // within the tick: of bob, only this travels

	if err := presence.Close(ctx); err != nil { // writes what is buffered
		panic(err)
	}
	users, err := online.Members(ctx, "subs:{42}")
	slices.Sort(users)
	fmt.Println(users, err)
	// Output: [alice erin] <nil>
}
