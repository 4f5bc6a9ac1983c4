// Package memory is a replset.Backend without a server: for Examples, and for
// tests of code that uses a replicated set. It keeps strings and sets in the
// process, and refuses keys of several slots with CROSSSLOT as Redis Cluster
// does. It runs no scripts, so a Set over it writes by transactions.
//
// It is not a Redis: its three masters share one memory and one lock, nothing
// persists, and it knows only the commands that a replicated set sends and
// those that fill a set (SADD, SREM, SET, DEL).
package memory

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shardkit/shardkit/slotmap"
)

// Backend is the in-memory cluster. Its methods follow replset.Backend.
type Backend struct {
	mu   sync.Mutex
	keys map[string]*value
	now  func() time.Time
}

// New returns an empty cluster.
func New() *Backend {
	return &Backend{keys: map[string]*value{}, now: time.Now}
}

// value is a string, or a set when members is not nil.
type value struct {
	text    string
	members map[string]struct{}
	expires time.Time // zero: never
}

// Do runs one command.
func (b *Backend) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v := b.run(key, cmd)
	if err, failed := v.(error); failed {
		return nil, err
	}
	return v, nil
}

// Pipeline runs the commands in order.
func (b *Backend) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	replies := make([]any, len(cmds))
	for i, cmd := range cmds {
		v, err := b.Do(ctx, keys[i], cmd)
		if replies[i] = v; err != nil {
			replies[i] = err
		}
	}
	return replies
}

// Tx runs the commands with no other command between them.
func (b *Backend) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var all []string
	for _, cmd := range cmds {
		c, err := lookUp(cmd)
		if err != nil {
			return nil, fmt.Errorf("EXECABORT Transaction discarded because of previous errors: %w", err)
		}
		all = append(all, c.keys(cmd)...)
	}
	if !slotmap.SameSlot(all...) {
		return nil, errCrossSlot
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	replies := make([]any, len(cmds))
	for i, cmd := range cmds {
		replies[i] = b.run(key, cmd)
	}
	return replies, nil
}

// serverError is an error in the words of a server.
type serverError string

func (e serverError) Error() string { return string(e) }

const (
	errCrossSlot = serverError("CROSSSLOT Keys in request don't hash to the same slot")
	errWrongType = serverError("WRONGTYPE Operation against a key holding the wrong kind of value")
	errSyntax    = serverError("ERR syntax error")
	errNoKey     = serverError("ERR no such key")
	errNotInt    = serverError("ERR value is not an integer or out of range")
)

func lookUp(cmd []string) (command, error) {
	if len(cmd) == 0 {
		return command{}, serverError("ERR empty command")
	}
	c, ok := commands[strings.ToUpper(cmd[0])]
	if !ok {
		return c, serverError(fmt.Sprintf("ERR unknown command '%s'", strings.ToLower(cmd[0])))
	}
	if len(cmd) < c.least {
		return c, serverError(fmt.Sprintf("ERR wrong number of arguments for '%s' command", strings.ToLower(cmd[0])))
	}
	return c, nil
}

// run executes one command on the master that owns key's slot; b.mu is held.
func (b *Backend) run(key string, cmd []string) any {
	c, err := lookUp(cmd)
	if err != nil {
		return err
	}
	if c.run == nil {
		return cluster(key, cmd)
	}
	if !slotmap.SameSlot(c.keys(cmd)...) {
		return errCrossSlot
	}
	return c.run(b, cmd)
}

// get returns the live value at key, or nil.
func (b *Backend) get(key string) *value {
	v := b.keys[key]
	if v != nil && !v.expires.IsZero() && !b.now().Before(v.expires) {
		delete(b.keys, key)
		return nil
	}
	return v
}

// set returns the members at key: empty for a missing key, ok false for a
// string.
func (b *Backend) set(key string) (members map[string]struct{}, ok bool) {
	v := b.get(key)
	if v == nil {
		return nil, true
	}
	return v.members, v.members != nil
}

// put stores a set; an empty one is no key, as in Redis.
func (b *Backend) put(key string, members map[string]struct{}) {
	if len(members) == 0 {
		delete(b.keys, key)
		return
	}
	b.keys[key] = &value{members: members}
}

func millis(text string) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, errNotInt
	}
	return time.Duration(n) * time.Millisecond, nil
}
