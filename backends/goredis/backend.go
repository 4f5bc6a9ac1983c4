package goredis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Backend sends the commands of a replicated set over a *redis.ClusterClient.
// Its methods satisfy replset.Backend, whose documentation holds for them.
type Backend struct {
	client   *redis.ClusterClient
	quick    bool         // the client's time-outs are soon
	nodes    sync.Map     // address -> *redis.Client, the newest for that address
	reloaded atomic.Int64 // when the slot map was last asked for, Unix ns
}

// New returns a backend over the caller's client, which stays the caller's to
// close. Make one per client and share it: it registers an OnNewNode callback,
// which the client keeps for its life.
func New(client *redis.ClusterClient) *Backend {
	b := &Backend{client: client, quick: quick(client.Options())}
	client.OnNewNode(func(node *redis.Client) { b.nodes.Store(node.Options().Addr, node) })
	return b
}

// Do runs one command on the master that owns key's slot.
func (b *Backend) Do(ctx context.Context, key string, cmd []string) (any, error) {
	all := []command{words(cmd)}
	return await(ctx, b, func() (any, error) {
		v := b.whole(ctx, key, all)[0]
		if err, failed := v.(error); failed {
			return nil, err
		}
		return resp2(v), nil
	})
}

// Tx runs the commands as one MULTI/EXEC. It is sent as an ordinary pipeline on
// the node's own client, because the cluster client's transactions follow
// redirects command by command.
func (b *Backend) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	all, n := transaction(cmds), len(cmds)
	return await(ctx, b, func() ([]any, error) {
		return executed(b.whole(ctx, key, all), n)
	})
}

// executed takes EXEC's replies, the last of all, or the error that kept it from
// running n commands.
func executed(replies []any, n int) ([]any, error) {
	last := replies[len(replies)-1]
	if list, ok := last.([]any); ok && len(list) == n {
		return resp2Each(list), nil
	}
	for _, v := range replies { // a refused command says more than EXECABORT after it
		if err, failed := v.(error); failed {
			return nil, err
		}
	}
	return nil, fmt.Errorf("goredis: EXEC returned %T, not %d replies", last, n)
}

// Pipeline runs the commands as one pipeline per node.
func (b *Backend) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	keys, all := slices.Clone(keys), wordsOf(cmds)
	replies, err := await(ctx, b, func() ([]any, error) { return resp2Each(b.spread(ctx, keys, all)), nil })
	if err != nil {
		replies = fill(len(cmds), err)
	}
	return replies
}

// whole runs commands on the master that owns key's slot, on one connection,
// and follows a redirect of any of them with all of them.
func (b *Backend) whole(ctx context.Context, key string, cmds []command) []any {
	node, err := b.masterOf(ctx, key)
	if err != nil {
		b.sawError(ctx, err)
		return fill(len(cmds), err)
	}
	replies := b.send(ctx, node, false, cmds)
	for range b.maxRedirects() {
		to, redirected := firstRedirect(replies)
		if !redirected {
			break
		}
		if node, err = b.nodeAt(ctx, to.addr, key); err != nil {
			return fill(len(cmds), err)
		}
		replies = b.send(ctx, node, to.ask, cmds)
	}
	return replies
}

// spread runs each command on its key's master, one pipeline a node, and sends
// those that were redirected again, grouped by where they were sent.
func (b *Backend) spread(ctx context.Context, keys []string, cmds []command) []any {
	replies := make([]any, len(cmds))
	groups := map[target][]int{}
	for i, key := range keys {
		node, err := b.masterOf(ctx, key)
		if err != nil {
			b.sawError(ctx, err)
			replies[i] = err
			continue
		}
		groups[target{node: node}] = append(groups[target{node: node}], i)
	}
	for hop := 0; len(groups) > 0; hop++ {
		var wg sync.WaitGroup
		for to, members := range groups {
			wg.Go(func() { b.sendGroup(ctx, to, members, cmds, replies) })
		}
		wg.Wait()
		if hop == b.maxRedirects() {
			break
		}
		again := map[target][]int{}
		for _, members := range groups {
			for _, i := range members {
				to, redirected := redirectOf(replies[i])
				if !redirected {
					continue
				}
				node, err := b.nodeAt(ctx, to.addr, keys[i])
				if err != nil {
					replies[i] = err
					continue
				}
				again[target{node, to.ask}] = append(again[target{node, to.ask}], i)
			}
		}
		groups = again
	}
	return replies
}

// target is a node, and whether it must be told ASKING first.
type target struct {
	node *redis.Client
	ask  bool
}

func (b *Backend) sendGroup(ctx context.Context, to target, members []int, cmds []command, replies []any) {
	batch := make([]command, 0, len(members))
	for _, i := range members {
		if to.ask { // ASKING holds for one command
			batch = append(batch, asking)
		}
		batch = append(batch, cmds[i])
	}
	got := b.send(ctx, to.node, false, batch)
	step := len(batch) / len(members)
	for n, i := range members {
		replies[i] = got[n*step+step-1]
	}
}

// send runs commands as one pipeline on one node. It never sends twice.
func (b *Backend) send(ctx context.Context, node *redis.Client, ask bool, cmds []command) []any {
	pipe := until(ctx, node).Pipeline()
	sent := make([]once, len(cmds))
	if ask { // inside MULTI it holds until EXEC
		_ = pipe.Process(ctx, newOnce(ctx, asking))
	}
	for i, cmd := range cmds {
		sent[i] = newOnce(ctx, cmd)
		_ = pipe.Process(ctx, sent[i])
	}
	_, _ = pipe.Exec(ctx) // each command holds its own error
	replies := make([]any, len(cmds))
	for i, cmd := range sent {
		v, err := cmd.Result()
		switch {
		case err == nil:
			replies[i] = v
		case errors.Is(err, redis.Nil):
		default:
			replies[i] = ended(ctx, err)
			b.sawError(ctx, err)
		}
	}
	return replies
}

// once is a command that the client does not resend, whatever its MaxRetries: a
// write that timed out may have taken effect.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func newOnce(ctx context.Context, cmd command) once { return once{redis.NewCmd(ctx, cmd...)} }

// command is a copy of the caller's words in the client's form: a redirect, or
// a call that returned early because its context ended, still reads it when the
// caller has his slices back.
type command []any

var (
	multi, execAll   = command{"MULTI"}, command{"EXEC"}
	asking, readonly = command{"ASKING"}, command{"READONLY"}
)

func words(cmd []string) command { return wordsOf([][]string{cmd})[0] }

func wordsOf(cmds [][]string) []command {
	n := 0
	for _, cmd := range cmds {
		n += len(cmd)
	}
	args, all := make(command, 0, n), make([]command, len(cmds))
	for i, cmd := range cmds {
		from := len(args)
		for _, word := range cmd {
			args = append(args, word)
		}
		all[i] = args[from:len(args):len(args)]
	}
	return all
}

// transaction is wordsOf between MULTI and EXEC.
func transaction(cmds [][]string) []command {
	all := make([]command, 0, len(cmds)+2)
	return append(append(append(all, multi), wordsOf(cmds)...), execAll)
}

// masterOf returns the node that owns key's slot. The client takes the empty
// key for none and picks any node; the server gives it slot 0.
func (b *Backend) masterOf(ctx context.Context, key string) (*redis.Client, error) {
	if key == "" {
		key = keyInSlot0
	}
	return b.client.MasterForKey(ctx, key)
}

const keyInSlot0 = "{3560}"

// sawError asks for a new slot map after an error that an old one explains, at
// most once a second. By itself the client asks once a minute, and until then
// keeps dialling a master that died. A deadline of the caller's counts too: it may
// be shorter than what the client takes to find that out.
func (b *Backend) sawError(ctx context.Context, err error) {
	var server redis.Error
	if errors.As(err, &server) && !redis.IsClusterDownError(err) && !redis.IsReadOnlyError(err) && !isMoved(err) {
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	now, last := time.Now().UnixNano(), b.reloaded.Load()
	if now-last >= int64(time.Second) && b.reloaded.CompareAndSwap(last, now) {
		b.client.ReloadState(context.WithoutCancel(ctx))
	}
}

func (b *Backend) maxRedirects() int { return max(b.client.Options().MaxRedirects, 1) }

func fill(n int, err error) []any {
	replies := make([]any, n)
	for i := range replies {
		replies[i] = err
	}
	return replies
}

// ReadTx is Tx for commands that only read, on a replica of the slot's master
// where the client knows one. It satisfies replset.ReplicaReader.
func (b *Backend) ReadTx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	// READONLY lets a replica serve reads; the connection keeps it, which on a
	// master means nothing.
	all, n := append([]command{readonly}, transaction(cmds)...), len(cmds)
	return await(ctx, b, func() ([]any, error) {
		node, err := b.client.SlaveForKey(ctx, key)
		if err != nil {
			b.sawError(ctx, err)
			return nil, err
		}
		return executed(b.send(ctx, node, false, all), n)
	})
}
