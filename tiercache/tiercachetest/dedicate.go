package tiercachetest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/shardkit/shardkit/tiercache"
)

// dedicated runs check with a connection of its own, and ends that.
func (p *probe) dedicated(check func(pipeline func(cmds ...[]string) []any) error) error {
	d, ok := p.Shard.(tiercache.Dedicator)
	if !ok {
		return &NotApplicable{"this shard gives no connection of one's own (tiercache.Dedicator)"}
	}
	pipeline, done := d.Dedicate()
	defer done()
	return check(func(cmds ...[]string) []any {
		ctx, cancel := context.WithTimeout(p.ctx, callTime)
		defer cancel()
		return pipeline(ctx, cmds)
	})
}

// own returns the id of a connection, by CLIENT ID.
func own(replies []any) (int64, error) {
	reply, err := only(replies)
	if err != nil {
		return 0, err
	}
	id, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("CLIENT ID: got %s, want an integer", show(reply))
	}
	return id, nil
}

var clientID = []string{"CLIENT", "ID"}

var dedicateRules = []Rule{
	{
		"TS-035", "dedicate-is-a-pipeline",
		"what Dedicate returns, where a shard has it, answers as Pipeline does: one element a command, in order, errors in their own; a context that has ended sends nothing",
		func(p *probe) error {
			key := p.key("dedicated")
			return p.dedicated(func(pipeline func(cmds ...[]string) []any) error {
				for round := range 3 {
					got := pipeline([]string{"SET", key, "v"}, []string{"INCR", key}, []string{"GET", key}, []string{"GET", key + "none"}, []string{"DEL", key})
					if len(got) != 5 {
						return fmt.Errorf("round %d: %d elements for 5 commands", round, len(got))
					}
					if err, failed := got[1].(error); !failed || code(err) != "ERR" {
						return fmt.Errorf("round %d: INCR of a word: got %s, want an error that begins with ERR", round, show(got[1]))
					}
					got[1] = nil
					if err := same(got, []any{"OK", nil, "v", nil, int64(1)}); err != nil {
						return fmt.Errorf("round %d: %w", round, err)
					}
				}
				late, done := p.Shard.(tiercache.Dedicator).Dedicate()
				defer done()
				ctx, cancel := context.WithCancel(p.ctx)
				cancel()
				reply, err := only(late(ctx, [][]string{{"SET", key, "late"}}))
				if !errors.Is(err, context.Canceled) {
					return fmt.Errorf("with a cancelled context: got %s, %v, want an error that wraps %q", show(reply), err, context.Canceled)
				}
				if v, err := p.do("GET", key); err != nil || v != nil {
					return fmt.Errorf("with a cancelled context the command was sent: %s, %v", show(v), err)
				}
				return nil
			})
		},
	},
	{
		"TS-036", "dedicate-is-one-connection",
		"what Dedicate returns sends on one connection that nobody else uses, makes another after that was lost, and leaves none when it is ended",
		func(p *probe) error {
			if err := p.known("CLIENT", "LIST"); err != nil {
				return err
			}
			var id int64
			err := p.dedicated(func(pipeline func(cmds ...[]string) []any) error {
				first, err := own(pipeline(clientID))
				if err != nil {
					return err
				}
				for range 20 {
					reply, err := p.do(clientID...)
					if err != nil {
						return err
					}
					if reply == first {
						return fmt.Errorf("its Do used the connection %d, which is for what Dedicate returned alone", first)
					}
					again, err := own(pipeline(clientID))
					if err != nil || again != first {
						return fmt.Errorf("a call used the connection %d (%v), the one before it %d", again, err, first)
					}
				}
				if _, err := p.do("CLIENT", "KILL", "ID", strconv.FormatInt(first, 10)); err != nil {
					return err
				}
				if id, err = own(pipeline(clientID)); err != nil { // which may find out that it was lost
					id, err = own(pipeline(clientID))
				}
				if err != nil || id == first {
					return fmt.Errorf("after its connection %d was lost, the second call at the latest is to have another: got %d, %v", first, id, err)
				}
				return nil
			})
			if err != nil {
				return err
			}
			for deadline := time.Now().Add(soon); ; time.Sleep(5 * time.Millisecond) {
				asked := time.Now()
				reply, err := p.do("CLIENT", "LIST")
				if err != nil {
					return err
				}
				if text, _ := reply.(string); !strings.Contains(text, fmt.Sprintf("id=%d ", id)) {
					return nil
				}
				if asked.After(deadline) {
					return fmt.Errorf("the connection %d is there %v after it was ended", id, soon)
				}
			}
		},
	},
}
