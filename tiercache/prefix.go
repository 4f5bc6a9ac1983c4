package tiercache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// DeletePrefix deletes all keys that begin with the prefix, "" for all keys of the
// namespace, and returns how many it found. A value that is set, or loaded, after it was called
// may be deleted or not.
//
// It is for rare use: every shard walks all its keys (SCAN), whatever is among them,
// in as many round trips as it has thousands of keys; keys are deleted 500 at a
// time; and at the end every process empties L1 of each shard's values, since it may hold
// some that the shard has not. For what is cleared often, give Tags.
//
// It ends with ctx, where what has been deleted stays so. The error joins a *ShardError
// for each shard that failed.
func (c *Cache[V]) DeletePrefix(ctx context.Context, prefix string) (deleted int, err error) {
	if err := c.closed(); err != nil {
		return 0, err
	}
	var found atomic.Int64
	err = c.each(ctx, func(r route) error {
		n, err := c.clear(ctx, r, prefix)
		found.Add(int64(n))
		var failed *ShardError
		if err != nil && !errors.As(err, &failed) {
			err = &ShardError{r.name, "clear", err}
		}
		return err
	})
	return int(found.Load()), err
}

const scanned = "1000" // keys that a SCAN looks at

// clear deletes the keys of one shard that begin with the prefix.
func (c *Cache[V]) clear(ctx context.Context, r route, prefix string) (deleted int, err error) {
	begin := c.place(prefix)
	for cursor := "0"; ; {
		if err := ctx.Err(); err != nil {
			return deleted, err
		}
		reply, err := r.do(ctx, []string{"SCAN", cursor, "MATCH", escaper.Replace(begin) + "*", "COUNT", scanned})
		if err != nil {
			return deleted, err
		}
		list, _ := reply.([]any)
		if len(list) != 2 {
			return deleted, fmt.Errorf("SCAN answered %T of %d", reply, len(list))
		}
		var ok bool
		if cursor, ok = list[0].(string); !ok {
			return deleted, fmt.Errorf("SCAN answered %T in place of a cursor", list[0])
		}
		places, _ := list[1].([]any)
		var keys []string
		for _, place := range places {
			if name, _ := place.(string); strings.HasPrefix(name, begin) {
				keys = append(keys, name[len(c.opts.Namespace)+1:])
			}
		}
		for len(keys) > 0 {
			step := keys[:min(len(keys), maxStepKeys)]
			places := c.places(step)
			err := c.writeAt(ctx, "clear", r, step, places, make([]item, len(step)))
			if err == nil { // others may have had it of this shard, and stored it where it is looked for
				err = c.eraseAhead(ctx, "clear", r, step, places)
			}
			if err != nil {
				return deleted, err
			}
			deleted += len(step)
			keys = keys[len(step):]
		}
		if cursor == "0" {
			break
		}
	}
	// A key of no value, which processes hear of.
	generation := r.generation.Load()
	_, err = c.writeTo(ctx, r, []string{c.opts.Namespace + prefixKind + prefix}, []item{{}})
	if err != nil {
		return deleted, err
	}
	r.listener.mu.Lock()
	defer r.listener.mu.Unlock()
	if r.generation.Load() == generation {
		r.end(endCleared, nil)
	}
	return deleted, nil
}

// prefixKind is what a notice has between the namespace and a prefix that was cleared.
const prefixKind = "#prefix:"

// escaper takes a pattern's own characters for what they are.
var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
