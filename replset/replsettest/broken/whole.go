package broken

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
)

// Whole returns an in-memory backend that keeps every rule of replsettest, with canned answers to what package memory does
// not know, so that each has something to check.
func Whole() replset.Backend { return whole{memory.New()} }

type whole struct{ replset.Backend }

func (w whole) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if v, known := canned(ctx, w.Backend, key, cmd); known {
		if err, failed := v.(error); failed {
			return nil, err
		}
		return v, nil
	}
	return w.Backend.Do(ctx, key, cmd)
}

func (w whole) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	replies := w.Backend.Pipeline(ctx, keys, cmds)
	for i, cmd := range cmds {
		if v, known := canned(ctx, w.Backend, keys[i], cmd); known {
			replies[i] = v
		}
	}
	return replies
}

func (w whole) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	if len(cmds) == 1 {
		if v, known := canned(ctx, w.Backend, key, cmds[0]); known {
			return []any{v}, nil
		}
	}
	return w.Backend.Tx(ctx, key, cmds)
}

func (w whole) ReadTx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	return w.Tx(ctx, key, cmds)
}

// brokenReader is a backend whose reads from server replicas are replaced.
type brokenReader struct {
	whole
	readTx func(ctx context.Context, key string, cmds [][]string) ([]any, error)
}

func (b brokenReader) ReadTx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	return b.readTx(ctx, key, cmds)
}

var cannedReplies = map[string]any{
	"HSET f v":               int64(1),
	"HGETALL":                []any{"f", "v"},
	"ZADD 1.5 m":             int64(1),
	"ZSCORE m":               "1.5",
	"ZADD inf top":           int64(1),
	"ZSCORE top":             "inf",
	"ZADD -inf bottom":       int64(1),
	"ZSCORE bottom":          "-inf",
	"ZADD 1700000000123 big": int64(1),
	"ZSCORE big":             "1700000000123",
	"ZRANGE 1 2 WITHSCORES":  []any{"m", "1.5", "big", "1700000000123"},
	"EVAL return 1 1":        int64(1),
	"EVAL nested 1":          []any{int64(1), "a", nil, []any{int64(-2), "", nil, []any{}}, "OK"},
}

func canned(ctx context.Context, b replset.Backend, key string, cmd []string) (any, bool) {
	if cmd[0] == "BLPOP" {
		d, _ := time.ParseDuration(cmd[2] + "s")
		select {
		case <-ctx.Done():
			return ctx.Err(), true
		case <-time.After(d):
			return nil, true
		}
	}
	if cmd[0] == "EVAL" && cmd[2] == "0" { // the suites' only script without keys gets the key that its argument names
		v, _ := b.Do(ctx, key, []string{"GET", cmd[3]})
		return v, true
	}
	words := slices.Clone(cmd)
	switch at := keyAt(words); {
	case cmd[0] == "EVAL" && strings.HasPrefix(cmd[1], "return {"):
		words = []string{"EVAL", "nested", "1"}
	case at < len(words):
		words = slices.Delete(words, at, at+1)
	}
	v, known := cannedReplies[strings.Join(words, " ")]
	if list, ok := v.([]any); ok {
		v = append([]any{}, list...)
	}
	return v, known
}

// keyAt is where a command has its key.
func keyAt(cmd []string) int {
	if cmd[0] == "EVAL" {
		return 3
	}
	return 1
}
