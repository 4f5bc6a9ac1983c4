package replset

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"
)

var (
	//go:embed lua/apply.lua
	applySource string
	//go:embed lua/into.lua
	intoSource string

	applyScript = newScript(applySource)
	intoScript  = newScript(intoSource)
)

// script is a Lua script, sent by its hash.
type script struct {
	source, sha string
}

func newScript(source string) script {
	sum := sha1.Sum([]byte(source))
	return script{source, hex.EncodeToString(sum[:])}
}

// byHash is the command to send first; the server answers NOSCRIPT if it has
// not seen the script since it started.
func (sc script) byHash(keys, args []string) []string { return command("EVALSHA", sc.sha, keys, args) }

// inFull carries the source, and leaves the script with the server.
func (sc script) inFull(keys, args []string) []string { return command("EVAL", sc.source, keys, args) }

func command(verb, what string, keys, args []string) []string {
	cmd := make([]string, 0, 3+len(keys)+len(args))
	cmd = append(cmd, verb, what, strconv.Itoa(len(keys)))
	return append(append(cmd, keys...), args...)
}

// eval runs a script on the master that owns key's slot.
func (s *Set) eval(ctx context.Context, key string, sc script, keys, args []string) (any, error) {
	v, err := s.backend.Do(ctx, key, sc.byHash(keys, args))
	if err != nil && code(err) == "NOSCRIPT" {
		return s.backend.Do(ctx, key, sc.inFull(keys, args))
	}
	return v, err
}
