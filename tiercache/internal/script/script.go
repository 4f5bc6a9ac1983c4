// Package script holds the Lua scripts by which a cache writes to a shard. They
// are apart from package tiercache for the in-memory shard, which has each of
// them in Go.
package script

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
)

// Script is a Lua script and the hash by which a server knows it.
type Script struct {
	Name, Source, SHA string

	// Stand is the form for a shard that stands in for others; nil where there is
	// none.
	Stand *Script
}

//go:embed lua
var lua embed.FS

var (
	Hello     = newScript("hello", "notes", "hello")
	Write     = bothWays("write", "hot", "write")
	Lease     = bothWays("lease", "envelope", "lease")
	Fill      = bothWays("fill", "envelope", "fill")
	Raise     = newScript("raise", "raise")
	ReadNotes = newScript("read_notes", "notes", "read_notes")
	Forget    = newScript("forget", "notes", "forget")
	Promote   = newScript("promote", "owner", "envelope", "hot", "promote")
	Copy      = newScript("copy", "copy")
	List      = newScript("list", "list")

	// For values with tags.
	TaggedWrite = bothWays("tagged write", "tags", "tagged_write", "hot", "write")
	TaggedLease = bothWays("tagged lease", "envelope", "tags", "tagged_lease", "lease")
	TaggedFill  = bothWays("tagged fill", "envelope", "tags", "tagged_fill", "fill")
)

const (
	// MostNotes is how many notes lie on one shard for another.
	MostNotes = 30_000
	// AllNotes is the note that stands for every key, in the place of those above.
	AllNotes = "#all"
)

func bothWays(name string, parts ...string) Script {
	stand := newScript(name+" of a stand-in", append([]string{"notes", "stand"}, parts...)...)
	s := newScript(name, append([]string{"owner"}, parts...)...)
	s.Stand = &stand
	return s
}

// newScript puts a script together of files.
func newScript(name string, parts ...string) Script {
	var source string
	for _, part := range append([]string{"state"}, parts...) {
		text, err := lua.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic(err)
		}
		source += string(text) + "\n"
	}
	sum := sha1.Sum([]byte(source))
	return Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}
