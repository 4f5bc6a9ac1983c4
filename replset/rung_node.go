package replset

import (
	"context"
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkit/shardkit/slotmap"
)

var (
	//go:embed lua/source.lua
	sourceSource string
	//go:embed lua/node.lua
	nodeSource string

	//go:embed lua/encoding.lua
	encodingSource string

	sourceScript = newScript(encodingSource + sourceSource)
	nodeScript   = newScript(nodeSource)
)

// nodeSteps writes many replicas a call by a script that runs on their node.
// Slots that it leaves (they are moving, or not there any more) get a call each.
type nodeSteps struct {
	keySteps
	node   *node
	source source // of a replacement
}

func (n *nodeSteps) step(ctx context.Context, slots []uint16) []error {
	if n.node.keysOnly.isSet() {
		return n.keySteps.step(ctx, slots)
	}
	if err := n.source.ready(ctx, slots[0]); err != nil {
		return n.refused(ctx, slots, err)
	}
	exceptions, err := n.call(ctx, slots)
	if err != nil {
		return n.refused(ctx, slots, err)
	}
	if len(exceptions) > 0 && exceptions[0].slot < 0 { // the source is gone: its slot has moved, or it was evicted
		n.source.lost()
		return n.keySteps.step(ctx, slots)
	}
	return n.redo(ctx, slots, exceptions)
}

// refused handles an error of a whole call. If it is the server's last word, the
// node gets a call per replica from now on.
func (n *nodeSteps) refused(ctx context.Context, slots []uint16, err error) []error {
	if code(err) == "" || transient(err) || code(err) == "OOM" || scriptsRefused(err) {
		outcomes := make([]error, len(slots))
		for i := range outcomes {
			outcomes[i] = err
		}
		return outcomes
	}
	n.node.keysOnly.set()
	return n.keySteps.step(ctx, slots)
}

func (n *nodeSteps) end(ctx context.Context) { n.source.end(ctx) }

// exception is a slot that a call did not settle; slot is an index, or -1.
type exception struct {
	slot int
	what string
}

// call runs the script for slots on the node that owns the first of them.
func (n *nodeSteps) call(ctx context.Context, slots []uint16) ([]exception, error) {
	c, kind, extra := n.c, n.source.kind, n.source.key
	switch {
	case c.kind == delta:
		kind = "delta"
	case c.kind == clearing:
		kind, extra = "clear", clearedLife
	case c.count == 0:
		kind = "empty"
	}
	usual := ""
	// A cleared set's stamp has a life, which the quick way would keep.
	if c.before.number != 0 && c.before.count != cleared {
		usual = c.before.String()
	}
	args := make([]string, 0, 11+c.weight()+len(slots))
	args = append(args, kind, n.set.name, strconv.FormatInt(c.number, 10), strconv.FormatInt(c.before.number, 10),
		usual, c.stamp().String(), bit(n.set.opts.Adopt), extra)
	if c.kind == delta {
		args = append(args, strconv.Itoa(len(c.add)), strconv.Itoa(len(c.remove)), strconv.Itoa(c.count-c.before.count))
		args = append(append(args, c.add...), c.remove...)
	} else {
		args = append(args, "0", "0", "0")
	}
	for _, slot := range slots {
		args = append(args, slotmap.Tag(slot))
	}
	v, err := n.set.eval(ctx, n.set.replicaKey(slots[0]), nodeScript, nil, args)
	if err != nil {
		return nil, err
	}
	return parseExceptions(v, len(slots))
}

func parseExceptions(v any, slots int) ([]exception, error) {
	list, ok := v.([]any)
	if !ok || len(list)%2 != 0 {
		return nil, unexpected(v)
	}
	var out []exception
	for i := 0; i < len(list); i += 2 {
		position, err := asInt(list[i])
		what, isText := list[i+1].(string)
		if err != nil || !isText || position < 0 || position > int64(slots) {
			return nil, unexpected(v)
		}
		out = append(out, exception{int(position) - 1, what})
	}
	return out, nil
}

// redo turns exceptions into outcomes, after a call of their own where the
// script asked for one.
func (n *nodeSteps) redo(ctx context.Context, slots []uint16, exceptions []exception) []error {
	outcomes := make([]error, len(slots))
	var left []uint16
	var at []int
	for _, e := range exceptions {
		if number, ok := strings.CutPrefix(e.what, "newer "); ok {
			n, _ := strconv.ParseInt(number, 10, 64)
			outcomes[e.slot] = newerError(n)
			continue
		}
		if e.what == "behind" {
			outcomes[e.slot] = errBehind
			continue
		}
		if n.source.kind == "restore" && e.what != "redo" {
			n.node.noRestore.set() // an error of the command itself
			n.source.how = "members"
			n.source.lost()
		}
		left, at = append(left, slots[e.slot]), append(at, e.slot)
	}
	if len(left) == 0 {
		return outcomes
	}
	again := n.keySteps.step(ctx, left)
	for i, err := range again {
		outcomes[at[i]] = err
	}
	// A server that lets a script touch declared keys only makes every slot an
	// exception, and then does all of them when asked one by one.
	if len(left) == len(slots) && len(slots) >= stepFirst && !slices.ContainsFunc(again, func(err error) bool { return err != nil }) {
		n.node.keysOnly.set()
	}
	return outcomes
}
