// Package redigo is a worked example of adapters for a third client: of a backend for github.com/gomodule/redigo with
// github.com/mna/redisc, which knows clusters, and of a cache's shard. They satisfy replset.Backend and tiercache.Shard by shape,
// and the conformance suite says that they are right. See docs/authoring-a-backend.md for the tour.
package redigo

import (
	"context"
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"
)

// Backend sends commands over the caller's *redisc.Cluster, which he closes.
type Backend struct{ cluster *redisc.Cluster }

// New returns a backend over the cluster. Its DialOptions need time-outs, and its CreatePool pools.
func New(cluster *redisc.Cluster) *Backend { return &Backend{cluster} }

// Do runs one command on the master that owns key's slot.
func (b *Backend) Do(ctx context.Context, key string, cmd []string) (any, error) {
	all := words([][]string{cmd})
	return await(ctx, func() (any, error) { return only(b.whole(key, all)[0]) })
}

// Tx runs the commands as one MULTI/EXEC.
func (b *Backend) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	all := append(append([][]any{{"MULTI"}}, words(cmds)...), []any{"EXEC"})
	return await(ctx, func() ([]any, error) { return executed(b.whole(key, all)) })
}

// executed takes a transaction's replies out of those from MULTI to EXEC.
func executed(replies []any) ([]any, error) {
	if list, ok := replies[len(replies)-1].([]any); ok {
		return list, nil
	}
	for _, v := range replies { // a refused command says more than EXECABORT after it
		if err, failed := v.(error); failed {
			return nil, err
		}
	}
	return nil, fmt.Errorf("redigo: EXEC gave no replies")
}

// Pipeline runs the commands of each slot as one pipeline, several at once. One a node would take fewer round trips; redisc does not
// tell which slots share one.
func (b *Backend) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	bySlot, first, all := map[int][]int{}, map[int]string{}, words(cmds)
	for i, key := range keys {
		slot := redisc.Slot(key)
		bySlot[slot], first[slot] = append(bySlot[slot], i), key
	}
	replies, err := await(ctx, func() ([]any, error) {
		replies := make([]any, len(all))
		var wg sync.WaitGroup
		atOnce := make(chan struct{}, 16)
		for slot, members := range bySlot {
			atOnce <- struct{}{}
			wg.Go(func() {
				defer func() { <-atOnce }()
				batch := make([][]any, len(members))
				for n, i := range members {
					batch[n] = all[i]
				}
				for n, v := range b.once(first[slot], batch) {
					if redisc.ParseRedir(asError(v)) != nil { // by itself: the others were done
						v = b.whole(first[slot], batch[n:n+1])[0]
					}
					replies[members[n]] = v
				}
			})
		}
		wg.Wait()
		return replies, nil
	})
	if err != nil {
		replies = fill(len(cmds), err)
	}
	return replies
}

const maxRedirects = 5

// whole runs commands on the master that owns key's slot, on one connection, and follows a redirect of any of them with all.
func (b *Backend) whole(key string, cmds [][]any) []any {
	replies := b.once(key, cmds)
	for range maxRedirects {
		var to *redisc.RedirError
		for _, v := range replies {
			if to = redisc.ParseRedir(asError(v)); to != nil {
				break
			}
		}
		if to == nil {
			break
		}
		conn, err := redis.Dial("tcp", to.Addr, b.cluster.DialOptions...)
		if err != nil {
			return fill(len(cmds), err)
		}
		if to.Type == "ASK" { // inside MULTI it holds until EXEC
			replies = send(conn, append([][]any{{"ASKING"}}, cmds...))[1:]
		} else {
			replies = send(conn, cmds)
		}
	}
	return replies
}

// once runs commands where redisc's slot map says. A MOVED corrects that map.
func (b *Backend) once(key string, cmds [][]any) []any {
	conn := b.cluster.Get()
	if err := redisc.BindConn(conn, key); err != nil {
		conn.Close()
		return fill(len(cmds), err)
	}
	return send(conn, cmds)
}

// send runs commands as one pipeline, once, and closes the connection, or gives it back to its pool.
func send(conn redis.Conn, cmds [][]any) []any {
	defer conn.Close()
	for _, cmd := range cmds {
		if err := conn.Send(cmd[0].(string), cmd[1:]...); err != nil {
			return fill(len(cmds), err)
		}
	}
	if err := conn.Flush(); err != nil {
		return fill(len(cmds), err)
	}
	replies := make([]any, len(cmds))
	for i := range replies {
		v, err := conn.Receive()
		if replies[i] = shape(v); err != nil {
			replies[i] = err
		}
	}
	return replies
}

// shape turns bytes into strings, in lists too; redigo's errors are errors already.
func shape(v any) any {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case []any:
		for i := range v {
			v[i] = shape(v[i])
		}
	}
	return v
}

// words copies the caller's slices, which are his again when a call returns because its context ended.
func words(cmds [][]string) [][]any {
	all := make([][]any, len(cmds))
	for i, cmd := range cmds {
		for _, word := range cmd {
			all[i] = append(all[i], word)
		}
	}
	return all
}

// await returns f's result, or an error as soon as ctx ends: redisc looks at no context. f goes on until the time-outs of DialOptions.
func await[T any](ctx context.Context, f func() (T, error)) (v T, err error) {
	if err := ctx.Err(); err != nil {
		return v, fmt.Errorf("redigo: nothing was sent: %w", err)
	}
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return v, fmt.Errorf("redigo: gave up waiting for the reply: %w", ctx.Err())
	}
}

func only(v any) (any, error) {
	if err := asError(v); err != nil {
		return nil, err
	}
	return v, nil
}

func asError(v any) error {
	err, _ := v.(error)
	return err
}

func fill(n int, err error) []any {
	replies := make([]any, n)
	for i := range replies {
		replies[i] = err
	}
	return replies
}
