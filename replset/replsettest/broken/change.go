package broken

import (
	"context"

	"github.com/shardkit/shardkit/replset"
)

// changed is a backend whose methods are replaced one by one.
type changed struct {
	replset.Backend
	do       func(ctx context.Context, key string, cmd []string) (any, error)
	pipeline func(ctx context.Context, keys []string, cmds [][]string) []any
	tx       func(ctx context.Context, key string, cmds [][]string) ([]any, error)
}

func (b changed) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if b.do == nil {
		return b.Backend.Do(ctx, key, cmd)
	}
	return b.do(ctx, key, cmd)
}

func (b changed) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	if b.pipeline == nil {
		return b.Backend.Pipeline(ctx, keys, cmds)
	}
	return b.pipeline(ctx, keys, cmds)
}

func (b changed) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	if b.tx == nil {
		return b.Backend.Tx(ctx, key, cmds)
	}
	return b.tx(ctx, key, cmds)
}

// replies breaks every reply, however it comes, errors included.
func replies(good replset.Backend, change func(cmd []string, v any) any) replset.Backend {
	altered := func(cmd []string, v any, err error) (any, error) {
		if err != nil {
			v = err
		}
		v = change(cmd, v)
		if err, failed := v.(error); failed {
			return nil, err
		}
		return v, nil
	}
	return changed{
		Backend: good,
		do: func(ctx context.Context, key string, cmd []string) (any, error) {
			v, err := good.Do(ctx, key, cmd)
			return altered(cmd, v, err)
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
				_, err = altered(nil, nil, err)
			}
			return list, err
		},
	}
}

// commands breaks every command on its way.
func commands(good replset.Backend, change func(key string, cmd []string) (string, []string)) replset.Backend {
	return changed{
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
	return changed{
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
