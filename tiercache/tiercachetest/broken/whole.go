package broken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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
	return &whole{Shard: memory.New(nil), subs: map[string]context.CancelFunc{}, dedicated: map[string]context.CancelFunc{}}
}

type whole struct {
	tiercache.Shard

	mu   sync.Mutex
	last int
	subs map[string]context.CancelFunc // by the connection's id

	dedicated map[string]context.CancelFunc // likewise
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
	return w.connected(ctx, func(ctx context.Context) error { return w.Shard.Subscribe(ctx, channels, onReady, onMessage) })
}

func (w *whole) Track(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(string, string), onChange func([]string)) error {
	return w.connected(ctx, func(ctx context.Context) error {
		return w.Shard.(tiercache.Tracker).Track(ctx, channels, prefix, onReady, onMessage, onChange)
	})
}

// connected runs subscribe on a connection that can be killed.
func (w *whole) connected(ctx context.Context, subscribe func(context.Context) error) error {
	life, kill := context.WithCancel(ctx)
	defer kill()
	id := w.connect(w.subs, kill)
	err := subscribe(life)
	w.leave(w.subs, id)
	if ctx.Err() == nil {
		return errors.New("broken: the connection was closed")
	}
	return err
}

func (w *whole) connect(list map[string]context.CancelFunc, kill context.CancelFunc) (id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	id = fmt.Sprint(w.last)
	list[id] = kill
	return id
}

func (w *whole) leave(list map[string]context.CancelFunc, id string) {
	w.mu.Lock()
	delete(list, id)
	w.mu.Unlock()
}

// Dedicate is Pipeline under an id of its own.
func (w *whole) Dedicate() (pipeline func(ctx context.Context, cmds [][]string) []any, done func()) {
	life, id := context.Background(), ""
	connect := func() {
		var kill context.CancelFunc
		life, kill = context.WithCancel(context.Background())
		id = w.connect(w.dedicated, kill)
	}
	done = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if kill := w.dedicated[id]; kill != nil {
			kill()
			delete(w.dedicated, id)
		}
	}
	return func(ctx context.Context, cmds [][]string) []any {
		if id == "" || life.Err() != nil {
			connect()
		}
		replies := w.Pipeline(ctx, cmds)
		for i, cmd := range cmds {
			if len(cmd) == 2 && strings.EqualFold(cmd[0]+cmd[1], "CLIENTID") {
				n, _ := strconv.ParseInt(id, 10, 64)
				replies[i] = n
			}
		}
		return replies
	}, done
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
		var list strings.Builder
		switch strings.ToUpper(cmd[1]) {
		case "ID":
			return int64(0), true
		case "KILL":
			for _, connections := range []map[string]context.CancelFunc{w.subs, w.dedicated} {
				if kill := connections[cmd[3]]; kill != nil {
					kill()
				}
			}
			delete(w.dedicated, cmd[3])
			return int64(1), true
		}
		if len(cmd) == 2 {
			for id := range w.dedicated {
				fmt.Fprintf(&list, "id=%s addr=x\n", id)
			}
		}
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
