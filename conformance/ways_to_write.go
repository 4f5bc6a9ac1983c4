package conformance

import (
	"context"

	"github.com/shardkit/shardkit/replset"
)

// serverError is an error in a server's words.
type serverError string

func (e serverError) Error() string { return string(e) }

// refusing is a backend whose servers refuse some commands, as managed services do: a set then writes another way.
type refusing struct {
	replset.Backend
	refuse func(cmd []string) error
}

func (r refusing) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if err := r.refuse(cmd); err != nil {
		return nil, err
	}
	return r.Backend.Do(ctx, key, cmd)
}

func (r refusing) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	for _, cmd := range cmds {
		if err := r.refuse(cmd); err != nil {
			replies := make([]any, len(cmds))
			for i := range replies {
				replies[i] = err
			}
			return replies
		}
	}
	return r.Backend.Pipeline(ctx, keys, cmds)
}

func isScript(cmd []string) bool { return cmd[0] == "EVAL" || cmd[0] == "EVALSHA" }

func asItIs(b replset.Backend) replset.Backend { return b }

func withoutKeylessScripts(b replset.Backend) replset.Backend {
	return refusing{b, func(cmd []string) error {
		if isScript(cmd) && len(cmd) > 2 && cmd[2] == "0" {
			return serverError("ERR a script must declare its keys")
		}
		return nil
	}}
}

func withoutScripts(b replset.Backend) replset.Backend {
	return refusing{b, func(cmd []string) error {
		if isScript(cmd) {
			return serverError("NOPERM this user has no permissions to run the 'evalsha' command")
		}
		return nil
	}}
}
