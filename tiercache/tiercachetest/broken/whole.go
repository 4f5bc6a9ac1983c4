package broken

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

// Whole returns an in-memory shard that keeps every rule of tiercachetest, with
// canned answers to what package memory does not know, and subscriptions that can
// be killed, so that each rule has something to check.
func Whole() tiercache.Shard {
	return &whole{Shard: memory.New(nil), subs: map[string]context.CancelFunc{}}
}

type whole struct {
	tiercache.Shard

	mu   sync.Mutex
	last int
	subs map[string]context.CancelFunc // by the connection's id
}

func (w *whole) Do(ctx context.Context, cmd []string) (any, error) {
	if v, known := w.canned(ctx, cmd); known {
		if err, failed := v.(error); failed {
			return nil, err
		}
		return v, nil
	}
	return w.Shard.Do(ctx, cmd)
}

func (w *whole) Pipeline(ctx context.Context, cmds [][]string) []any {
	replies := w.Shard.Pipeline(ctx, cmds)
	for i, cmd := range cmds {
		if v, known := w.canned(ctx, cmd); known {
			replies[i] = v
		}
	}
	return replies
}

func (w *whole) Tx(ctx context.Context, cmds [][]string) ([]any, error) {
	if len(cmds) == 1 {
		if v, known := w.canned(ctx, cmds[0]); known {
			return []any{v}, nil
		}
	}
	return w.Shard.Tx(ctx, cmds)
}

func (w *whole) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
	life, kill := context.WithCancel(ctx)
	defer kill()
	w.mu.Lock()
	w.last++
	id := fmt.Sprint(w.last)
	w.subs[id] = kill
	w.mu.Unlock()
	err := w.Shard.Subscribe(life, channels, onReady, onMessage)
	w.mu.Lock()
	delete(w.subs, id)
	w.mu.Unlock()
	if ctx.Err() == nil {
		return errors.New("broken: the connection was closed")
	}
	return err
}

func (w *whole) canned(ctx context.Context, cmd []string) (any, bool) {
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
		w.mu.Lock()
		defer w.mu.Unlock()
		if strings.ToUpper(cmd[1]) == "KILL" {
			w.subs[cmd[3]]()
			return int64(1), true
		}
		var list strings.Builder
		for id := range w.subs {
			fmt.Fprintf(&list, "id=%s addr=x\n", id)
		}
		return list.String(), true
	}
	words := slices.DeleteFunc(slices.Clone(cmd), func(word string) bool { return strings.Contains(word, ":") }) // keys
	if words[0] == "EVAL" && strings.HasPrefix(words[1], "return {") {
		words = []string{"EVAL", "nested"}
	}
	v, known := cannedReplies[strings.Join(words, " ")]
	if list, ok := v.([]any); ok {
		v = slices.Clone(list)
	}
	return v, known
}

var cannedReplies = map[string]any{
	"HSET f v":              int64(1),
	"HGETALL":               []any{"f", "v"},
	"ZADD 1.5 m":            int64(1),
	"ZSCORE m":              "1.5",
	"ZADD 1700000000123 n":  int64(1),
	"ZSCORE n":              "1700000000123",
	"ZRANGE 0 1 WITHSCORES": []any{"m", "1.5", "n", "1700000000123"},
	"EVAL return 1 0":       int64(1),
	"EVAL nested":           []any{int64(1), "a", nil, []any{int64(-2), "", nil, []any{}}, int64(1 << 53)},
}
