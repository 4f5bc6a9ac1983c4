package goredis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// redirect is where a server said to go.
type redirect struct {
	addr string
	ask  bool
}

func redirectOf(reply any) (redirect, bool) {
	err, failed := reply.(error)
	if !failed {
		return redirect{}, false
	}
	if addr, ok := redis.IsMovedError(err); ok {
		return redirect{addr: addr}, true
	}
	addr, ok := redis.IsAskError(err)
	return redirect{addr: addr, ask: true}, ok
}

func firstRedirect(replies []any) (redirect, bool) {
	for _, v := range replies {
		if to, ok := redirectOf(v); ok {
			return to, true
		}
	}
	return redirect{}, false
}

func isMoved(err error) bool {
	_, ok := redis.IsMovedError(err)
	return ok
}

// nodeAt returns the client's own connection pool for an address that a
// redirect named. The cluster client has no call for that, so: a node made since
// New is known from OnNewNode, an older one from the slot map; and for a node
// that is in neither (a new master without slots, which ASK names first), a
// harmless command makes the client follow the same redirect and create the
// node.
func (b *Backend) nodeAt(ctx context.Context, addr, key string) (*redis.Client, error) {
	find := func() *redis.Client {
		if node, ok := b.nodes.Load(addr); ok {
			return node.(*redis.Client)
		}
		return nil
	}
	if node := find(); node != nil && !closed(ctx, node) {
		return node, nil
	}
	b.nodes.Delete(addr)
	_ = b.client.ForEachShard(ctx, func(_ context.Context, node *redis.Client) error {
		b.nodes.LoadOrStore(node.Options().Addr, node)
		return nil
	})
	if node := find(); node != nil && !closed(ctx, node) {
		return node, nil
	}
	b.beAsked(ctx, key)
	if node := find(); node != nil {
		return node, nil
	}
	return nil, fmt.Errorf("goredis: redirected to %s, which the client cannot reach", addr)
}

// beAsked makes the client follow an ASK of key's slot, which a server says only
// of keys that it does not have: so it deletes one that nobody has, in that slot
// and under key's name, which a user with few rights may still touch. A command
// that writes goes to the master whatever the client's options for reading are.
func (b *Backend) beAsked(ctx context.Context, key string) {
	if key == "" {
		key = keyInSlot0
	}
	if open := strings.IndexByte(key, '{'); open < 0 || strings.IndexByte(key[open+1:], '}') <= 0 { // no hash tag
		if strings.Contains(key, "}") { // nor can there be one: no tag holds a brace
			_ = b.client.Exists(ctx, key).Err()
			return
		}
		key = "{" + key + "}"
	}
	_ = b.client.Del(ctx, key+":absent:"+rand.Text()).Err()
}

// closed reports whether the cluster client has dropped the node since.
func closed(ctx context.Context, node *redis.Client) bool {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	// A closed pool says so before it looks at the context.
	return errors.Is(node.Ping(ended).Err(), redis.ErrClosed)
}
