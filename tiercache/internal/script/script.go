// Package script holds the Lua scripts by which a cache writes to a shard. They
// are apart from package tiercache for the in-memory shard, which has each of
// them in Go.
package script

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// Script is a Lua script and the hash by which a server knows it.
type Script struct {
	Name, Source, SHA string
}

var (
	//go:embed lua/state.lua
	state string
	//go:embed lua/envelope.lua
	envelope string
	//go:embed lua/hello.lua
	hello string
	//go:embed lua/write.lua
	write string
	//go:embed lua/lease.lua
	lease string
	//go:embed lua/fill.lua
	fill string
	//go:embed lua/hot.lua
	hot string
	//go:embed lua/promote.lua
	promote string
	//go:embed lua/copy.lua
	copied string

	Hello   = newScript("hello", hello)
	Write   = newScript("write", hot+write)
	Lease   = newScript("lease", envelope+lease)
	Fill    = newScript("fill", envelope+fill)
	Promote = newScript("promote", envelope+hot+promote)
	Copy    = newScript("copy", copied)
)

func newScript(name, body string) Script {
	source := state + "\n" + body
	sum := sha1.Sum([]byte(source))
	return Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}
