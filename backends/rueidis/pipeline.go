package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/rueidis"
)

// pieceSize bounds the commands of one DoMulti in a pipeline. rueidis sends them
// on a connection that all callers share, so a long one would hold up the
// others, and past ConnWriteTimeout count as a node that is silent.
const pieceSize = 512

// pipeline is one call of Pipeline. Only the caller's goroutine touches the
// slices, so that none is touched after it has returned.
type pipeline struct {
	b       *Backend
	keys    []string
	cmds    [][]string
	replies []any
	done    chan *part
	open    int // parts under way
}

// part is what one node gets of a pipeline.
type part struct {
	to      target
	hop     int
	members []int // indexes of cmds

	results []rueidis.RedisResult // shorter than it should be if err is set
	err     error
}

var errOpen = errors.New("no reply yet")

// Pipeline runs the commands as one pipeline per node.
func (b *Backend) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	if len(keys) != len(cmds) {
		return fill(len(cmds), fmt.Errorf("rueidisbackend: Pipeline: %d keys for %d commands: give one key per command", len(keys), len(cmds)))
	}
	if err := ctx.Err(); err != nil {
		return fill(len(cmds), notSent(err))
	}
	p := pipeline{b: b, keys: keys, cmds: cmds, replies: fill(len(cmds), errOpen), done: make(chan *part)}
	first := parts{}
	for i, cmd := range cmds {
		slot := b.slotOf(keys[i])
		err := refuse(cmd)
		if err == nil {
			var addr string
			if addr, err = b.owner(ctx, slot); err == nil {
				first.add(target{addr: addr, slot: slot}, 0, i)
				continue
			}
		}
		p.replies[i] = err
	}
	p.sendAll(ctx, first)
	for p.open > 0 {
		select {
		case done := <-p.done:
			p.open--
			p.sendAll(ctx, p.settle(ctx, done))
		case <-ctx.Done():
			b.reload()
			for i, v := range p.replies {
				if v == errOpen {
					p.replies[i] = gaveUp(ctx.Err())
				}
			}
			return p.replies
		}
	}
	return p.replies
}

// parts groups commands by where they go.
type parts map[node]*part

type node struct {
	addr string
	ask  bool
}

func (ps parts) add(to target, hop, i int) {
	at := node{to.addr, to.ask}
	if ps[at] == nil {
		ps[at] = &part{to: to, hop: hop}
	}
	ps[at].members = append(ps[at].members, i)
}

func (p *pipeline) sendAll(ctx context.Context, ps parts) {
	for _, part := range ps {
		var pieces [][]rueidis.Completed
		for members := range slices.Chunk(part.members, pieceSize) {
			var piece []rueidis.Completed
			for _, i := range members {
				if part.to.ask { // ASKING holds for one command
					piece = append(piece, p.b.bare("ASKING"))
				}
				piece = append(piece, p.b.command(p.cmds[i]))
			}
			pieces = append(pieces, piece)
		}
		p.open++
		go func() {
			part.run(ctx, p.b, pieces)
			select {
			case p.done <- part:
			case <-ctx.Done(): // the caller has left
			}
		}()
	}
}

// run sends the pieces one after the other. The first that the node does not
// answer is the last one sent.
func (part *part) run(ctx context.Context, b *Backend, pieces [][]rueidis.Completed) {
	for _, piece := range pieces {
		if ctx.Err() != nil {
			part.err = notSent(ctx.Err())
			return
		}
		results, err := b.exchange(ctx, part.to, piece)
		if err != nil {
			part.err = err
			return
		}
		part.results = append(part.results, results...)
		if err := results[len(results)-1].NonRedisError(); err != nil {
			part.err = failure(ctx, part.to.addr, err)
			return
		}
	}
}

// settle stores a part's replies, and returns the commands that were redirected,
// grouped by where to.
func (p *pipeline) settle(ctx context.Context, done *part) parts {
	if done.err != nil && done.err != errElsewhere {
		p.b.lost(ctx)
	}
	step := 1
	if done.to.ask {
		step = 2
	}
	again := parts{}
	for n, i := range done.members {
		reply := any(done.err)
		if at := n*step + step - 1; at < len(done.results) {
			reply = shape(p.cmds[i], p.b.reply(ctx, done.to.addr, done.results[at]))
		}
		to, redirected := p.b.redirected(done.to, p.b.slotOf(p.keys[i]), reply)
		if !redirected || done.hop == maxRedirects {
			p.replies[i] = reply
			continue
		}
		again.add(to, done.hop+1, i)
	}
	return again
}

func fill(n int, err error) []any {
	replies := make([]any, n)
	for i := range replies {
		replies[i] = err
	}
	return replies
}
