// Command rings sets the rings of other projects beside package ring: how evenly they spread keys, how many move when a node comes
// or goes, and what a lookup costs. It is for comparison only: nothing imports it.
//
//	make peers-ring                   the table, from anywhere in the repository
//	go run ./rings                    the same
//	go run ./rings -sets 200          the same, of more sets of names
//	go test -run TestFasterThanGoRedis -v ./rings
//
// All rings get the same names and the same keys, and their defaults but for 150 virtual nodes where that can be chosen. The
// floor is a perfect hash: what chance makes of so many keys.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"text/tabwriter"
	"time"
)

// nameWidth pads the one column that is to the left: the longest name has 30 letters.
const nameWidth = 30

func main() {
	keys := flag.Int("keys", 200_000, "keys that are placed")
	sets := flag.Int("sets", 9, "sets of names that are tried")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the names and keys")
	flag.Parse()
	if *keys < 1000 || *sets < 1 || flag.NArg() > 0 {
		log.Fatal("rings: want at least 1000 keys and one set of names, and no arguments")
	}

	fmt.Printf("%d keys of %d B, %d sets of names, seed %d\n", *keys, keyLength, *sets, *seed)
	fmt.Println("above: keys of the most loaded node above its share, median (worst) of the sets. 3 to 4: keys that move, 25 % at best.")
	fmt.Println("bad: keys that move between two nodes that stay, of 10 nodes, when one comes, and when the first goes.")
	fmt.Println("ns: of a lookup, shortest of many rounds in turn.")
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%-*s\tabove N=3\tN=10\tN=100\t3 to 4\tbad, one comes\tone goes\tns N=3\tN=10\tN=100\tallocations\t\n", nameWidth, "ring")
	speeds := measureSpeeds(*seed)
	for _, p := range peers {
		s := speeds[p.name]
		fmt.Fprintf(w, "%-*s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", nameWidth, p.name,
			deviation(p, 3, *keys, *sets, *seed), deviation(p, 10, *keys, *sets, *seed), deviation(p, 100, *keys, min(*sets, 5), *seed),
			remapped(p, *keys, *sets, *seed), badWhenOneComes(p, *keys, *sets, *seed), badWhenOneGoes(p, *keys, *sets, *seed),
			s.ns[0], s.ns[1], s.ns[2], s.allocations)
	}
	w.Flush()

	fmt.Println("\nWhat profile ring of package conformance says; a ring that knows owners alone is asked again without them for the second:")
	if err := writeConformance(context.Background(), os.Stdout, *seed>>11); err != nil {
		log.Fatal("rings: ", err)
	}
}
