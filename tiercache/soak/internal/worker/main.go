// Command worker is a process of a soak run and nothing else, for tests that
// build it of changed sources.
package main

import "github.com/shardkit/shardkit/tiercache/soak"

func main() { soak.Main() }
