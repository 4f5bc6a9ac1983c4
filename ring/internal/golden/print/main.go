// Command print prints the lines of package golden. Built for another architecture and run there, it must print the same.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/shardkit/shardkit/ring/internal/golden"
)

func main() {
	lines, err := golden.Lines(1)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(lines, "\n"))
}
