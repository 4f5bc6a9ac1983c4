package shard

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/tiercache"
	"github.com/shardkit/shardkit/tiercache/memory"
)

// both sends every command to a server and to the in-memory shard, and compares
// what they answer.
type both struct {
	tiercache.Shard // the server
	memory          *memory.Shard
	differ          func(cmd []string, server, memory any)

	mu    sync.Mutex
	calls map[string]int // by command
	now   time.Time      // the server's, as a script last told
}

func (b *both) Do(ctx context.Context, cmd []string) (any, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx = context.WithoutCancel(ctx) // one that ends in between would end one of the two
	v, err := b.Shard.Do(ctx, cmd)
	b.hear(cmd, v)
	w, memoryErr := b.memory.Do(ctx, cmd)
	b.compare(cmd, v, err, w, memoryErr)
	return v, err
}

func (b *both) Pipeline(ctx context.Context, cmds [][]string) []any {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	list := b.Shard.Pipeline(ctx, cmds)
	for i, cmd := range cmds {
		b.hear(cmd, list[i])
		b.compare(cmd, list[i], nil, b.memory.Pipeline(ctx, cmds[i:i+1])[0], nil)
	}
	return list
}

// hear has the in-memory shard live at the server's time: what a moment decides is the
// same for both, however late one of them is asked.
func (b *both) hear(cmd []string, server any) {
	if v, ok := server.([]any); ok && strings.HasPrefix(cmd[0], "EVAL") && len(v) > 2 {
		if us, ok := v[2].(int64); ok {
			b.now = time.UnixMicro(us)
		}
	}
}

func (b *both) compare(cmd []string, server any, err error, memory any, memoryErr error) {
	b.calls[cmd[0]]++
	if err != nil {
		server = err
	}
	if memoryErr != nil {
		memory = memoryErr
	}
	if fmt.Sprint(timeless(cmd, server)) != fmt.Sprint(timeless(cmd, memory)) {
		b.differ(cmd, timeless(cmd, server), timeless(cmd, memory))
	}
}

// timeless is a reply without what differs between two servers: the epoch, and
// times. A sequence is counted from the epoch.
func timeless(cmd []string, v any) any {
	switch v := v.(type) {
	case error:
		word, _, _ := strings.Cut(v.Error(), " ")
		return word
	case string:
		const head = 35
		if strings.HasPrefix(v, "tcs\x02") && len(v) > 44 {
			epoch, sequence := binary.BigEndian.Uint64([]byte(v[4:])), binary.BigEndian.Uint64([]byte(v[12:]))
			return fmt.Sprintf("state, %d writes, run of %d digits", sequence-epoch, len(v)-44)
		}
		if strings.HasPrefix(v, "tc\x01") && len(v) > head {
			epoch, sequence := binary.BigEndian.Uint64([]byte(v[3:])), binary.BigEndian.Uint64([]byte(v[11:]))
			return fmt.Sprintf("value of write %d: %q", sequence-epoch, v[head:])
		}
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = timeless(cmd, e)
		}
		if strings.HasPrefix(cmd[0], "EVAL") && len(v) > 2 { // epoch, sequence, now
			epoch, _ := v[0].(int64)
			sequence, _ := v[1].(int64)
			out[0], out[1], out[2] = epoch > 1e15, sequence-epoch, "now"
			for i, e := range out[3:] {
				if us, ok := e.(int64); ok && us > 1e15 {
					out[3+i] = "a time"
				}
			}
		}
		return out
	}
	return v
}

// The in-memory shard answers a cache as a server does: to its scripts, before
// they are loaded too, and to reads of what they stored.
func TestMemoryIsLikeAServer(t *testing.T) {
	server := clients[0].open(t, server(t, harness.Options{}).Addr())
	b := &both{Shard: server, calls: map[string]int{}, now: time.Now()}
	b.memory = memory.New(&memory.Options{Now: func() time.Time { return b.now }})
	differences := 0
	b.differ = func(cmd []string, server, memory any) {
		if differences++; differences < 5 {
			t.Errorf("%.40q: the server answers %v, memory %v", cmd, server, memory)
		}
	}
	namespace := fmt.Sprint("memory-", rand.Uint32())
	cache, err := tiercache.New[string](map[string]tiercache.Shard{"a": b}, &tiercache.Options{
		Namespace: namespace, LocalBytes: -1, Heartbeat: 20 * time.Millisecond, TTL: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	ctx := soon(t)
	for i := range 2000 {
		key, value := fmt.Sprint("k", random.IntN(20)), fmt.Sprint("v", i)
		var err error
		switch random.IntN(8) {
		case 0, 1:
			_, err = cache.Get(ctx, key)
		case 2:
			_, err = cache.GetOrLoad(ctx, key, func(context.Context) (string, error) { return value, nil })
		case 3:
			_, err = cache.GetOrLoad(ctx, key, func(context.Context) (string, error) {
				if err := cache.Delete(ctx, key); err != nil { // so the fill is refused
					return "", err
				}
				return value, nil
			})
		case 4:
			err = cache.Set(ctx, key, value)
		case 5:
			err = cache.SetMany(ctx, map[string]string{key: value, key + "b": value})
		case 6:
			err = cache.DeleteMany(ctx, key, key+"b")
		case 7:
			if i%50 == 0 {
				_, err = b.Do(ctx, []string{"DEL", namespace + ":" + key})
			}
		}
		if err != nil && !errors.Is(err, tiercache.ErrNotFound) {
			t.Fatalf("operation %d of seed %d: %v", i, seed, err)
		}
	}
	if differences > 0 {
		t.Errorf("%d differences with seed %d", differences, seed)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.calls["EVALSHA"] < 500 || b.calls["EVAL"] < 3 || b.calls["MGET"] < 200 {
		t.Errorf("too little was compared: %v", b.calls)
	}
	t.Logf("compared: %v", b.calls)
}
