package rueidisbackend

import (
	"context"

	"github.com/redis/rueidis"
)

// Dedicate returns what Pipeline is, over a connection of its own.
func (s *Shard) Dedicate() (pipeline func(ctx context.Context, cmds [][]string) []any, done func()) {
	d := &dedicated{shard: s}
	return d.pipeline, d.drop
}

// dedicated is a connection that is dialled when it is needed, and left as soon as
// it does not answer.
type dedicated struct {
	shard   *Shard
	conn    rueidis.DedicatedClient
	dialled chan rueidis.DedicatedClient // where one is being dialled
}

func (d *dedicated) pipeline(ctx context.Context, cmds [][]string) []any {
	if err := ctx.Err(); err != nil {
		return fill(len(cmds), notSent(err))
	}
	built := make([]rueidis.Completed, len(cmds))
	for i, cmd := range cmds {
		if err := refuse(cmd); err != nil {
			return fill(len(cmds), err)
		}
		built[i] = build(d.shard.builder, cmd)
	}
	if !d.connect(ctx) {
		return fill(len(cmds), notSent(ctx.Err()))
	}
	conn, done := d.conn, make(chan []rueidis.RedisResult, 1)
	go func() { done <- conn.DoMulti(context.WithoutCancel(ctx), built...) }()
	select {
	case results := <-done:
		replies := make([]any, len(cmds))
		lost := false
		for i, r := range results {
			if err := r.NonRedisError(); err != nil {
				lost = true
				replies[i] = failure(ctx, d.shard.addr, err)
				continue
			}
			m, _ := r.ToMessage()
			replies[i] = shape(cmds[i], plain(&m))
		}
		if lost {
			d.drop()
		}
		return replies
	case <-ctx.Done():
		d.drop()
		return fill(len(cmds), gaveUp(ctx.Err()))
	}
}

// connect waits for a connection until ctx ends. rueidis dials without looking at
// ctx; what is being dialled then is there for the next call.
func (d *dedicated) connect(ctx context.Context) bool {
	if d.conn != nil {
		return true
	}
	if d.dialled == nil {
		dialled := make(chan rueidis.DedicatedClient, 1)
		go func() {
			conn, _ := d.shard.client.Dedicate()
			dialled <- conn
		}()
		d.dialled = dialled
	}
	select {
	case d.conn = <-d.dialled:
		d.dialled = nil
		return true
	case <-ctx.Done():
		return false
	}
}

// drop closes the connection, which waits for a silent server for a second.
func (d *dedicated) drop() {
	conn, dialled := d.conn, d.dialled
	d.conn, d.dialled = nil, nil
	if conn != nil {
		go conn.Close()
	}
	if dialled != nil {
		go func() { (<-dialled).Close() }()
	}
}
