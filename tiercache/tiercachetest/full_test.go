package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// full is the in-memory shard with canned answers to what it does not know, and
// with subscriptions that can be killed, so that every rule has something to
// check here.
type full struct {
	tiercache.Shard

	mu   sync.Mutex
	last int
	subs map[string]context.CancelFunc // by the connection's id
}

func newFull() *full { return &full{Shard: memory.New(nil), subs: map[string]context.CancelFunc{}} }

func (f *full) Do(ctx context.Context, cmd []string) (any, error) {
	if v, known := f.canned(ctx, cmd); known {
		if err, failed := v.(error); failed {
			return nil, err
		}
		return v, nil
	}
	return f.Shard.Do(ctx, cmd)
}

func (f *full) Pipeline(ctx context.Context, cmds [][]string) []any {
	replies := f.Shard.Pipeline(ctx, cmds)
	for i, cmd := range cmds {
		if v, known := f.canned(ctx, cmd); known {
			replies[i] = v
		}
	}
	return replies
}

func (f *full) Tx(ctx context.Context, cmds [][]string) ([]any, error) {
	if len(cmds) == 1 {
		if v, known := f.canned(ctx, cmds[0]); known {
			return []any{v}, nil
		}
	}
	return f.Shard.Tx(ctx, cmds)
}

func (f *full) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
	life, kill := context.WithCancel(ctx)
	defer kill()
	f.mu.Lock()
	f.last++
	id := fmt.Sprint(f.last)
	f.subs[id] = kill
	f.mu.Unlock()
	err := f.Shard.Subscribe(life, channels, onReady, onMessage)
	f.mu.Lock()
	delete(f.subs, id)
	f.mu.Unlock()
	if ctx.Err() == nil {
		return errors.New("full: the connection was closed")
	}
	return err
}

func (f *full) canned(ctx context.Context, cmd []string) (any, bool) {
	switch strings.ToUpper(cmd[0]) {
	case "BLPOP":
		d, _ := time.ParseDuration(cmd[2] + "s")
		select {
		case <-ctx.Done():
			return ctx.Err(), true
		case <-time.After(d):
			return nil, true
		}
	case "CLIENT":
		f.mu.Lock()
		defer f.mu.Unlock()
		if strings.ToUpper(cmd[1]) == "KILL" {
			f.subs[cmd[3]]()
			return int64(1), true
		}
		var list strings.Builder
		for id := range f.subs {
			fmt.Fprintf(&list, "id=%s addr=x\n", id)
		}
		return list.String(), true
	}
	words := slices.DeleteFunc(slices.Clone(cmd), func(w string) bool { return strings.HasPrefix(w, "tiercachetest:") })
	v, known := cannedReplies[strings.Join(words, " ")]
	if list, ok := v.([]any); ok {
		v = slices.Clone(list)
	}
	return v, known
}

var cannedReplies = map[string]any{
	"HSET f v":                    int64(1),
	"HGETALL":                     []any{"f", "v"},
	"ZADD 1.5 m":                  int64(1),
	"ZSCORE m":                    "1.5",
	"ZADD 1700000000123 n":        int64(1),
	"ZSCORE n":                    "1700000000123",
	"ZRANGE 0 1 WITHSCORES":       []any{"m", "1.5", "n", "1700000000123"},
	"EVAL return 1 0":             int64(1),
	"EVAL " + nestedScript + " 0": []any{int64(1), "a", nil, []any{int64(-2), "", nil, []any{}}, int64(1 << 53)},
}

// broken is a shard whose methods are replaced one by one.
type broken struct {
	tiercache.Shard
	do        func(ctx context.Context, cmd []string) (any, error)
	pipeline  func(ctx context.Context, cmds [][]string) []any
	tx        func(ctx context.Context, cmds [][]string) ([]any, error)
	subscribe subscribe
}

type subscribe = func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error

func (b broken) Do(ctx context.Context, cmd []string) (any, error) {
	if b.do == nil {
		return b.Shard.Do(ctx, cmd)
	}
	return b.do(ctx, cmd)
}

func (b broken) Pipeline(ctx context.Context, cmds [][]string) []any {
	if b.pipeline == nil {
		return b.Shard.Pipeline(ctx, cmds)
	}
	return b.pipeline(ctx, cmds)
}

func (b broken) Tx(ctx context.Context, cmds [][]string) ([]any, error) {
	if b.tx == nil {
		return b.Shard.Tx(ctx, cmds)
	}
	return b.tx(ctx, cmds)
}

func (b broken) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
	if b.subscribe == nil {
		return b.Shard.Subscribe(ctx, channels, onReady, onMessage)
	}
	return b.subscribe(ctx, channels, onReady, onMessage)
}

// replies breaks every reply, however it comes, errors included.
func replies(good tiercache.Shard, change func(cmd []string, v any) any) tiercache.Shard {
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
	each := func(cmds [][]string, list []any) []any {
		for i, v := range list {
			list[i] = change(cmds[i], v)
		}
		return list
	}
	return broken{
		Shard: good,
		do: func(ctx context.Context, cmd []string) (any, error) {
			v, err := good.Do(ctx, cmd)
			return changed(cmd, v, err)
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
	return broken{
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
	return broken{Shard: good, subscribe: change}
}
