package broken

import (
	"context"

	"github.com/shardkit/shardkit/tiercache"
)

// changed is a shard whose methods are replaced one by one.
type changed struct {
	tiercache.Shard
	do        func(ctx context.Context, cmd []string) (any, error)
	pipeline  func(ctx context.Context, cmds [][]string) []any
	tx        func(ctx context.Context, cmds [][]string) ([]any, error)
	subscribe subscribe
	track     track
	dedicate  func() (func(ctx context.Context, cmds [][]string) []any, func())
}

type subscribe = func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error

type track = func(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(string, string), onChange func([]string)) error

func (b changed) Do(ctx context.Context, cmd []string) (any, error) {
	if b.do == nil {
		return b.Shard.Do(ctx, cmd)
	}
	return b.do(ctx, cmd)
}

func (b changed) Pipeline(ctx context.Context, cmds [][]string) []any {
	if b.pipeline == nil {
		return b.Shard.Pipeline(ctx, cmds)
	}
	return b.pipeline(ctx, cmds)
}

func (b changed) Tx(ctx context.Context, cmds [][]string) ([]any, error) {
	if b.tx == nil {
		return b.Shard.Tx(ctx, cmds)
	}
	return b.tx(ctx, cmds)
}

func (b changed) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
	if b.subscribe == nil {
		return b.Shard.Subscribe(ctx, channels, onReady, onMessage)
	}
	return b.subscribe(ctx, channels, onReady, onMessage)
}

func (b changed) Track(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(string, string), onChange func([]string)) error {
	if b.track == nil {
		return b.Shard.(tiercache.Tracker).Track(ctx, channels, prefix, onReady, onMessage, onChange)
	}
	return b.track(ctx, channels, prefix, onReady, onMessage, onChange)
}

func (b changed) Dedicate() (pipeline func(ctx context.Context, cmds [][]string) []any, done func()) {
	if b.dedicate == nil {
		return b.Shard.(tiercache.Dedicator).Dedicate()
	}
	return b.dedicate()
}

// replies breaks every reply, however it comes, errors included.
func replies(good tiercache.Shard, change func(cmd []string, v any) any) tiercache.Shard {
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
	each := func(cmds [][]string, list []any) []any {
		for i, v := range list {
			list[i] = change(cmds[i], v)
		}
		return list
	}
	return changed{
		Shard: good,
		do: func(ctx context.Context, cmd []string) (any, error) {
			v, err := good.Do(ctx, cmd)
			return altered(cmd, v, err)
		},
		pipeline: func(ctx context.Context, cmds [][]string) []any { return each(cmds, good.Pipeline(ctx, cmds)) },
		tx: func(ctx context.Context, cmds [][]string) ([]any, error) {
			list, err := good.Tx(ctx, cmds)
			return each(cmds, list), err
		},
	}
}

// calls breaks how every command is run.
func calls(good tiercache.Shard, around func(ctx context.Context, cmds [][]string, run func(context.Context, [][]string) ([]any, error)) ([]any, error)) tiercache.Shard {
	return changed{
		Shard: good,
		do: func(ctx context.Context, cmd []string) (any, error) {
			list, err := around(ctx, [][]string{cmd}, func(ctx context.Context, cmds [][]string) ([]any, error) {
				v, err := good.Do(ctx, cmds[0])
				return []any{v}, err
			})
			if err != nil {
				return nil, err
			}
			return list[0], nil
		},
		pipeline: func(ctx context.Context, cmds [][]string) []any {
			list, err := around(ctx, cmds, func(ctx context.Context, cmds [][]string) ([]any, error) {
				return good.Pipeline(ctx, cmds), nil
			})
			if err != nil {
				list = make([]any, len(cmds))
				for i := range list {
					list[i] = err
				}
			}
			return list
		},
		tx: func(ctx context.Context, cmds [][]string) ([]any, error) { return around(ctx, cmds, good.Tx) },
	}
}

// listens breaks how messages are delivered.
func listens(good tiercache.Shard, change subscribe) tiercache.Shard {
	return changed{Shard: good, subscribe: change}
}

// tracks breaks how changes are told.
func tracks(good tiercache.Shard, change func(good tiercache.Tracker) track) tiercache.Shard {
	return changed{Shard: good, track: change(good.(tiercache.Tracker))}
}

// dedicates breaks what is given a connection of its own.
func dedicates(good tiercache.Shard, change func(pipeline func(ctx context.Context, cmds [][]string) []any, done func()) (func(ctx context.Context, cmds [][]string) []any, func())) tiercache.Shard {
	return changed{Shard: good, dedicate: func() (func(ctx context.Context, cmds [][]string) []any, func()) {
		return change(good.(tiercache.Dedicator).Dedicate())
	}}
}
