package ring_test

import (
	"fmt"

	"github.com/shardkit/shardkit/ring"
)

func Example() {
	r, err := ring.New(ring.Nodes("shard-1", "shard-2", "shard-3"), nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Locate("user:42"))

	// The owner is down: the key is on its second node, until the owner is back.
	fmt.Println(r.LocateN("user:42", 3))
	r, err = r.WithDown(r.Locate("user:42"))
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Locate("user:42"))
	// Output:
	// shard-3
	// [shard-3 shard-2 shard-1]
	// shard-2
}

func ExampleNew_weights() {
	r, err := ring.New([]ring.Node{
		{Name: "small", Weight: 1},
		{Name: "large", Weight: 3},
	}, nil)
	if err != nil {
		panic(err)
	}
	for i, share := range r.Shares() {
		fmt.Printf("%s %.0f %%\n", r.Name(i), share*100)
	}
	// Output:
	// large 75 %
	// small 25 %
}

func ExampleDiff() {
	before, err := ring.New(ring.Nodes("shard-1", "shard-2", "shard-3"), nil)
	if err != nil {
		panic(err)
	}
	after, err := before.With(ring.Node{Name: "shard-4", Weight: 1})
	if err != nil {
		panic(err)
	}
	change, err := ring.Diff(before, after)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.1f %% of the keys move\n", change.Moved*100)
	for _, m := range change.Moves {
		fmt.Printf("%s to %s: %.1f %%\n", m.From, m.To, m.Share*100)
	}
	// Output:
	// 25.1 % of the keys move
	// shard-1 to shard-4: 8.3 %
	// shard-2 to shard-4: 8.4 %
	// shard-3 to shard-4: 8.3 %
}

func ExampleRing_Group() {
	r, err := ring.New(ring.Nodes("shard-1", "shard-2", "shard-3"), nil)
	if err != nil {
		panic(err)
	}
	keys := []string{"a", "b", "c", "d", "e"}
	for _, g := range r.Group(keys) {
		fmt.Print("MGET of ", g.Name, ":")
		for _, at := range g.Keys {
			fmt.Print(" ", keys[at])
		}
		fmt.Println()
	}
	// Output:
	// MGET of shard-1: d
	// MGET of shard-2: a c
	// MGET of shard-3: b e
}

func ExampleRing_IndexBounded() {
	r, err := ring.New(ring.Nodes("shard-1", "shard-2", "shard-3"), nil)
	if err != nil {
		panic(err)
	}
	// Everyone wants one key. Its owner takes what is a quarter above its share, and the next nodes of its order the rest.
	loads := make([]int64, r.Len())
	for range 90 {
		node, err := r.IndexBounded("hot", loads, 0.25)
		if err != nil {
			panic(err)
		}
		loads[node]++
	}
	for _, name := range r.LocateN("hot", 3) {
		i, _ := r.Find(name)
		fmt.Println(name, loads[i])
	}
	// Output:
	// shard-2 37
	// shard-3 37
	// shard-1 16
}

func ExampleLive() {
	r, err := ring.New(ring.Nodes("shard-1", "shard-2", "shard-3"), nil)
	if err != nil {
		panic(err)
	}
	live := ring.NewLive(r)

	// One goroutine keeps it up to date.
	if _, err := live.Update(func(r *ring.Ring) (*ring.Ring, error) {
		return r.WithDown("shard-3")
	}); err != nil {
		panic(err)
	}

	// Any number of others read it. An operation on several keys takes one snapshot.
	snapshot := live.Snapshot()
	fmt.Println(snapshot.Down(), snapshot.Locate("user:42"), snapshot.Locate("user:43"))
	// Output:
	// [shard-3] shard-2 shard-1
}

func ExampleClassic() {
	r, err := ring.New(ring.Nodes("shard-1", "shard-2", "shard-3"), &ring.Options{
		Placement: ring.Classic{VirtualNodes: 150},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Locate("user:42"))
	// Output:
	// shard-3
}
