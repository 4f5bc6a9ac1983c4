// Command requirements writes REQUIREMENTS.md from the suite's cases.
package main

import (
	"fmt"
	"os"

	"github.com/shardkit/shardkit/conformance"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "requirements: want the file to write")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(conformance.Requirements(conformance.Cases())), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "requirements:", err)
		os.Exit(1)
	}
}
