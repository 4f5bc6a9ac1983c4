package replsettest

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
)

// full is the in-memory backend with canned answers to what it does not know,
// so that every rule has something to check here.
type full struct{ replset.Backend }

func newFull() replset.Backend { return full{memory.New()} }

func (f full) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if v, known := canned(ctx, f.Backend, key, cmd); known {
		if err, failed := v.(error); failed {
			return nil, err
		}
		return v, nil
	}
	return f.Backend.Do(ctx, key, cmd)
}

func (f full) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	replies := f.Backend.Pipeline(ctx, keys, cmds)
	for i, cmd := range cmds {
		if v, known := canned(ctx, f.Backend, keys[i], cmd); known {
			replies[i] = v
		}
	}
	return replies
}

func (f full) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	if len(cmds) == 1 {
		if v, known := canned(ctx, f.Backend, key, cmds[0]); known {
			return []any{v}, nil
		}
	}
	return f.Backend.Tx(ctx, key, cmds)
}

func (f full) ReadTx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	return f.Tx(ctx, key, cmds)
}

// brokenReader is a backend whose reads from server replicas are replaced.
type brokenReader struct {
	full
	readTx func(ctx context.Context, key string, cmds [][]string) ([]any, error)
}

func (b brokenReader) ReadTx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	return b.readTx(ctx, key, cmds)
}

var cannedReplies = map[string]any{
	"HSET f v":                    int64(1),
	"HGETALL":                     []any{"f", "v"},
	"ZADD 1.5 m":                  int64(1),
	"ZSCORE m":                    "1.5",
	"ZADD inf top":                int64(1),
	"ZSCORE top":                  "inf",
	"ZADD -inf bottom":            int64(1),
	"ZSCORE bottom":               "-inf",
	"ZADD 1700000000123 big":      int64(1),
	"ZSCORE big":                  "1700000000123",
	"ZRANGE 1 2 WITHSCORES":       []any{"m", "1.5", "big", "1700000000123"},
	"EVAL return 1 1":             int64(1),
	"EVAL " + nestedScript + " 1": []any{int64(1), "a", nil, []any{int64(-2), "", nil, []any{}}, "OK"},
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
	if cmd[0] == "EVAL" && cmd[1] == keylessScript {
		v, _ := b.Do(ctx, key, []string{"GET", cmd[3]})
		return v, true
	}
	words := append([]string{}, cmd...)
	for i, w := range words {
		if strings.HasPrefix(w, "replsettest:") {
			words = append(words[:i], words[i+1:]...)
			break
		}
	}
	v, known := cannedReplies[strings.Join(words, " ")]
	if list, ok := v.([]any); ok {
		v = append([]any{}, list...)
	}
	return v, known
}

// broken is a backend whose methods are replaced one by one.
type broken struct {
	replset.Backend
	do       func(ctx context.Context, key string, cmd []string) (any, error)
	pipeline func(ctx context.Context, keys []string, cmds [][]string) []any
	tx       func(ctx context.Context, key string, cmds [][]string) ([]any, error)
}

func (b broken) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if b.do == nil {
		return b.Backend.Do(ctx, key, cmd)
	}
	return b.do(ctx, key, cmd)
}

func (b broken) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	if b.pipeline == nil {
		return b.Backend.Pipeline(ctx, keys, cmds)
	}
	return b.pipeline(ctx, keys, cmds)
}

func (b broken) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	if b.tx == nil {
		return b.Backend.Tx(ctx, key, cmds)
	}
	return b.tx(ctx, key, cmds)
}

// replies breaks every reply, however it comes, errors included.
func replies(good replset.Backend, change func(cmd []string, v any) any) replset.Backend {
	changed := func(cmd []string, v any, err error) (any, error) {
		if err != nil {
			v = err
		}
		v = change(cmd, v)
		if err, failed := v.(error); failed {
			return nil, err
		}
		return v, nil
	}
	return broken{
		Backend: good,
		do: func(ctx context.Context, key string, cmd []string) (any, error) {
			v, err := good.Do(ctx, key, cmd)
			return changed(cmd, v, err)
		},
		pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
			list := good.Pipeline(ctx, keys, cmds)
			for i, cmd := range cmds {
				list[i] = change(cmd, list[i])
			}
			return list
		},
		tx: func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			list, err := good.Tx(ctx, key, cmds)
			for i := range list {
				list[i] = change(cmds[i], list[i])
			}
			if err != nil {
				_, err = changed(nil, nil, err)
			}
			return list, err
		},
	}
}

// commands breaks every command on its way.
func commands(good replset.Backend, change func(key string, cmd []string) (string, []string)) replset.Backend {
	return broken{
		Backend: good,
		do: func(ctx context.Context, key string, cmd []string) (any, error) {
			key, cmd = change(key, cmd)
			return good.Do(ctx, key, cmd)
		},
		pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
			keys2, cmds2 := make([]string, len(keys)), make([][]string, len(cmds))
			for i := range cmds {
				keys2[i], cmds2[i] = change(keys[i], cmds[i])
			}
			return good.Pipeline(ctx, keys2, cmds2)
		},
		tx: func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			cmds2 := make([][]string, len(cmds))
			var to string
			for i := range cmds {
				to, cmds2[i] = change(key, cmds[i])
			}
			return good.Tx(ctx, to, cmds2)
		},
	}
}

// contexts breaks the context of every call.
func contexts(good replset.Backend, change func(context.Context) context.Context) replset.Backend {
	return broken{
		Backend: good,
		do: func(ctx context.Context, key string, cmd []string) (any, error) {
			return good.Do(change(ctx), key, cmd)
		},
		pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
			return good.Pipeline(change(ctx), keys, cmds)
		},
		tx: func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			return good.Tx(change(ctx), key, cmds)
		},
	}
}

func ruleIDs() map[string]bool {
	ids := map[string]bool{}
	for _, r := range rules {
		ids[r.Name] = true
	}
	return maps.Clone(ids)
}
