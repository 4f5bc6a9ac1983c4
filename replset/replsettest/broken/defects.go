// Package broken is a table of backends that each break one rule of replset.Backend, over an in-memory cluster. Suites use
// it to show that they can fail: replsettest here, package conformance from its own module.
package broken

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// A Defect is one way to break the contract.
type Defect struct {
	Rule string // the name of the rule that forbids it: "reply-shapes"
	Name string // what the backend does, in the third person

	breaks func(good replset.Backend) replset.Backend
}

// New returns a backend with the defect, over a cluster of its own.
func (d Defect) New() replset.Backend { return d.breaks(Whole()) }

// Defects are all of them; every rule of replsettest has one at least.
var Defects = []Defect{
	{"reply-shapes", "returns numbers as strings", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if n, ok := v.(int64); ok {
				return strconv.FormatInt(n, 10)
			}
			return v
		})
	}},
	{"reply-shapes", "returns int", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if n, ok := v.(int64); ok {
				return int(n)
			}
			return v
		})
	}},
	{"reply-shapes", "reads numbers out of strings", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if s, ok := v.(string); ok {
				if n, err := strconv.ParseInt(s, 10, 64); err == nil {
					return n
				}
			}
			return v
		})
	}},
	{"reply-shapes", "returns []byte", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if s, ok := v.(string); ok {
				return []byte(s)
			}
			return v
		})
	}},
	{"reply-shapes", "returns []string", func(good replset.Backend) replset.Backend {
		return replies(good, func(cmd []string, v any) any {
			if list, ok := v.([]any); ok && cmd[0] == "SMEMBERS" {
				out := []string{}
				for _, e := range list {
					out = append(out, e.(string))
				}
				return out
			}
			return v
		})
	}},
	{"reply-shapes", "returns OK as nil", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if v == "OK" {
				return nil
			}
			return v
		})
	}},
	{"reply-shapes", "returns an empty list as nil", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if list, ok := v.([]any); ok && len(list) == 0 {
				return nil
			}
			return v
		})
	}},
	{"missing-key-is-nil", "returns an error for a missing key", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if v == nil {
				return errors.New("redis: nil")
			}
			return v
		})
	}},
	{"missing-key-is-nil", "returns an empty string for a missing key", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if v == nil {
				return ""
			}
			return v
		})
	}},
	{"missing-key-is-nil", "returns nil for an empty string", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if v == "" {
				return nil
			}
			return v
		})
	}},
	{"resp2-shapes", "returns a map", func(good replset.Backend) replset.Backend {
		return replies(good, func(cmd []string, v any) any {
			if len(cmd) > 0 && cmd[0] == "HGETALL" {
				return map[any]any{"f": "v"}
			}
			return v
		})
	}},
	{"resp2-shapes", "returns a float", func(good replset.Backend) replset.Backend {
		return replies(good, func(cmd []string, v any) any {
			if s, ok := v.(string); ok && cmd[0] == "ZSCORE" {
				f, _ := strconv.ParseFloat(s, 64)
				return f
			}
			return v
		})
	}},
	{"resp2-shapes", "writes doubles as Go does", func(good replset.Backend) replset.Backend {
		return replies(good, func(cmd []string, v any) any {
			if s, ok := v.(string); ok && cmd[0] == "ZSCORE" {
				f, _ := strconv.ParseFloat(s, 64)
				return fmt.Sprint(f)
			}
			return v
		})
	}},
	{"resp2-shapes", "nests members and scores", func(good replset.Backend) replset.Backend {
		return replies(good, func(cmd []string, v any) any {
			if list, ok := v.([]any); ok && cmd[0] == "ZRANGE" {
				return []any{list[:2], list[2:]}
			}
			return v
		})
	}},
	{"nested-replies", "drops nil from a list", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if list, ok := v.([]any); ok {
				return slices.DeleteFunc(list, func(e any) bool { return e == nil })
			}
			return v
		})
	}},
	{"server-text-first", "returns nil for an error", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if _, failed := v.(error); failed {
				return nil
			}
			return v
		})
	}},
	{"server-text-first", "returns an error as a reply", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, do: func(ctx context.Context, key string, cmd []string) (any, error) {
			v, err := good.Do(ctx, key, cmd)
			if err != nil {
				v = err
			}
			return v, nil
		}}
	}},
	{"server-text-first", "puts its own name before the server's text", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if err, failed := v.(error); failed {
				return fmt.Errorf("client: %w", err)
			}
			return v
		})
	}},
	{"refused-commands", "returns nil for an error of its Tx", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, tx: func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			list, err := good.Tx(ctx, key, cmds)
			if err != nil {
				return make([]any, len(cmds)), nil
			}
			return list, nil
		}}
	}},
	{"cross-slot", "panics on keys of two slots", func(good replset.Backend) replset.Backend {
		return commands(good, func(key string, cmd []string) (string, []string) {
			if cmd[0] == "SINTER" && !slotmap.SameSlot(cmd[1:]...) {
				panic("multi key command with different key slots")
			}
			return key, cmd
		})
	}},
	{"cross-slot", "hides CROSSSLOT", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if err, failed := v.(error); failed && code(err) == "CROSSSLOT" {
				return []any{}
			}
			return v
		})
	}},
	{"other-errors-look-different", "shouts its own errors", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if err, failed := v.(error); failed && code(err) == "" {
				return fmt.Errorf("TIMEOUT %w", err)
			}
			return v
		})
	}},
	{"binary-safe", "cuts strings at NUL", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if s, ok := v.(string); ok {
				v, _, _ = strings.Cut(s, "\x00")
			}
			return v
		})
	}},
	{"binary-safe", "mends UTF-8", func(good replset.Backend) replset.Backend {
		return commands(good, func(key string, cmd []string) (string, []string) {
			out := slices.Clone(cmd)
			for i := range out {
				out[i] = strings.ToValidUTF8(out[i], "?")
			}
			return key, out
		})
	}},
	{"binary-safe", "drops empty arguments", func(good replset.Backend) replset.Backend {
		return commands(good, func(key string, cmd []string) (string, []string) {
			return key, slices.DeleteFunc(slices.Clone(cmd), func(arg string) bool { return arg == "" })
		})
	}},
	{"large-value", "cuts values at 64 KiB", func(good replset.Backend) replset.Backend {
		return commands(good, func(key string, cmd []string) (string, []string) {
			out := slices.Clone(cmd)
			for i := range out {
				out[i] = out[i][:min(len(out[i]), 1<<16)]
			}
			return key, out
		})
	}},
	{"large-value", "sends 1000 words at most", func(good replset.Backend) replset.Backend {
		return commands(good, func(key string, cmd []string) (string, []string) { return key, cmd[:min(len(cmd), 1000)] })
	}},
	{"cluster-slots", "returns slot numbers as strings", func(good replset.Backend) replset.Backend {
		return replies(good, func(cmd []string, v any) any {
			if list, ok := v.([]any); ok && cmd[0] == "CLUSTER" {
				for _, r := range list {
					r := r.([]any)
					r[0], r[1] = fmt.Sprint(r[0]), fmt.Sprint(r[1])
				}
			}
			return v
		})
	}},
	{"cluster-slots", "loses a range", func(good replset.Backend) replset.Backend {
		return replies(good, func(cmd []string, v any) any {
			if list, ok := v.([]any); ok && cmd[0] == "CLUSTER" {
				return list[1:]
			}
			return v
		})
	}},
	{"routing-key-decides", "routes by the command's own key", func(good replset.Backend) replset.Backend {
		return commands(good, func(_ string, cmd []string) (string, []string) { return cmd[min(1, len(cmd)-1)], cmd })
	}},
	{"routing-key-decides", "sends the empty key anywhere", func(good replset.Backend) replset.Backend {
		return commands(good, func(key string, cmd []string) (string, []string) {
			if key == "" {
				key = slotmap.KeyForSlot("x", slotmap.Slots-1)
			}
			return key, cmd
		})
	}},
	{"routing-key-decides", "takes the last brace for the tag's end", func(good replset.Backend) replset.Backend {
		return commands(good, func(key string, cmd []string) (string, []string) {
			if key == "{}" {
				key = slotmap.KeyForSlot("x", 0)
			}
			return key, cmd
		})
	}},
	{"keyless-script", "sends a keyless script anywhere", func(good replset.Backend) replset.Backend {
		return replies(good, func(cmd []string, v any) any {
			if len(cmd) == 4 && cmd[0] == "EVAL" && cmd[2] == "0" && slotmap.Slot(cmd[3]) > slotmap.Slots/3 {
				return nil
			}
			return v
		})
	}},
	{"every-slot-served", "cannot reach a node", func(good replset.Backend) replset.Backend {
		return commands(good, func(key string, cmd []string) (string, []string) {
			if slotmap.Slot(key) > 2*slotmap.Slots/3 {
				return key, []string{"NOSUCHCOMMAND"}
			}
			return key, cmd
		})
	}},
	{"pipeline-in-order", "reorders a pipeline", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
			list := good.Pipeline(ctx, keys, cmds)
			if n := len(list); n > 1 {
				list[n-1], list[n-2] = list[n-2], list[n-1]
			}
			return list
		}}
	}},
	{"pipeline-in-order", "drops the last element", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
			list := good.Pipeline(ctx, keys, cmds)
			return list[:min(len(list), 999)]
		}}
	}},
	{"pipeline-isolates", "drops one error", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
			list := good.Pipeline(ctx, keys, cmds)
			for i, v := range list {
				if _, failed := v.(error); failed && i > 100 {
					list[i] = nil
					break
				}
			}
			return list
		}}
	}},
	{"pipeline-isolates", "fails whole for one error", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
			list := good.Pipeline(ctx, keys, cmds)
			for _, v := range list {
				if err, failed := v.(error); failed {
					for i := range list {
						list[i] = err
					}
					break
				}
			}
			return list
		}}
	}},
	{"pipeline-of-none", "panics without commands", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
			_ = keys[0]
			return good.Pipeline(ctx, keys, cmds)
		}}
	}},
	{"tx-in-order", "runs a Tx backwards", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, tx: func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			cmds = slices.Clone(cmds)
			slices.Reverse(cmds)
			list, err := good.Tx(ctx, key, cmds)
			slices.Reverse(list)
			return list, err
		}}
	}},
	{"tx-element-errors", "fails a Tx for one element", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, tx: func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			list, err := good.Tx(ctx, key, cmds)
			for _, v := range list {
				if failed, ok := v.(error); ok {
					return nil, failed
				}
			}
			return list, err
		}}
	}},
	{"tx-element-errors", "drops an element's error", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if _, failed := v.(error); failed {
				return nil
			}
			return v
		})
	}},
	{"tx-all-or-none", "runs a Tx command by command", oneByOne},
	{"tx-cross-slot", "splits a Tx by slot", oneByOne},
	{"tx-atomic", "runs a Tx without MULTI", oneByOne},
	{"ended-context", "ignores the context", func(good replset.Backend) replset.Backend {
		return contexts(good, context.WithoutCancel)
	}},
	{"ended-context", "hides the context's error", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if err, failed := v.(error); failed && errors.Is(err, context.Canceled) {
				return errors.New("cancelled")
			}
			return v
		})
	}},
	{"ended-context", "takes every end for a cancellation", func(good replset.Backend) replset.Backend {
		return replies(good, func(_ []string, v any) any {
			if err, failed := v.(error); failed && errors.Is(err, context.DeadlineExceeded) {
				return context.Canceled
			}
			return v
		})
	}},
	{"ended-context", "waits for the server nevertheless", func(good replset.Backend) replset.Backend {
		return contexts(good, func(ctx context.Context) context.Context {
			if ctx.Err() != nil {
				time.Sleep(promptly + 100*time.Millisecond)
			}
			return ctx
		})
	}},
	{"cancellation-is-prompt", "is deaf once a command is sent", func(good replset.Backend) replset.Backend {
		return contexts(good, func(ctx context.Context) context.Context {
			if ctx.Err() != nil {
				return ctx
			}
			return context.WithoutCancel(ctx)
		})
	}},
	{"cancellation-is-prompt", "tells the end only after the reply", func(good replset.Backend) replset.Backend {
		return changed{
			Backend: good,
			do: func(ctx context.Context, key string, cmd []string) (any, error) {
				v, err := good.Do(context.WithoutCancel(ctx), key, cmd)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				return v, err
			},
		}
	}},
	{"slices-unchanged", "writes the command's name in capitals", func(good replset.Backend) replset.Backend {
		return commands(good, func(key string, cmd []string) (string, []string) {
			cmd[0] = strings.ToUpper(cmd[0])
			return key, cmd
		})
	}},
	{"slices-unchanged", "sorts the keys", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
			list := good.Pipeline(ctx, keys, cmds)
			slices.Sort(keys)
			return list
		}}
	}},
	{"slices-unchanged", "appends to the command", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, tx: func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			list, err := good.Tx(ctx, key, cmds)
			_ = append(cmds[0], "one more")
			return list, err
		}}
	}},
	{"slices-not-kept", "keeps the slice and writes later", func(good replset.Backend) replset.Backend {
		var mu sync.Mutex
		var late []string
		return changed{Backend: good, do: func(ctx context.Context, key string, cmd []string) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			if late != nil {
				_, _ = good.Do(ctx, late[1], late)
				late = nil
			}
			if cmd[0] == "SET" {
				late = cmd
				return "OK", nil
			}
			return good.Do(ctx, key, cmd)
		}}
	}},
	{"slices-not-kept", "knows a command by its slice", func(good replset.Backend) replset.Backend {
		var mu sync.Mutex
		seen := map[*string]bool{}
		return changed{Backend: good, do: func(ctx context.Context, key string, cmd []string) (any, error) {
			mu.Lock()
			again := seen[&cmd[0]]
			seen[&cmd[0]] = true
			mu.Unlock()
			if again && cmd[0] == "SET" {
				return "OK", nil
			}
			return good.Do(ctx, key, cmd)
		}}
	}},
	{"slices-not-kept-after-cancel", "gives up waiting and sends nevertheless", func(good replset.Backend) replset.Backend {
		var mu sync.Mutex
		var late []string
		return changed{Backend: good, do: func(ctx context.Context, key string, cmd []string) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			if _, limited := ctx.Deadline(); limited && cmd[0] == "SET" {
				<-ctx.Done()
				late = cmd
				return nil, ctx.Err()
			}
			if late != nil {
				_, _ = good.Do(ctx, late[1], late)
				late = nil
			}
			return good.Do(ctx, key, cmd)
		}}
	}},
	{"concurrent-use", "hands a reply to whoever asks first", func(good replset.Backend) replset.Backend {
		return changed{Backend: good, do: func(ctx context.Context, key string, cmd []string) (any, error) {
			v, err := good.Do(ctx, key, cmd)
			replyBox <- v
			time.Sleep(time.Millisecond) // long enough for another call to come between
			return <-replyBox, err
		}}
	}},
	{"concurrent-use", "serves one caller at a time and forgets the rest", func(good replset.Backend) replset.Backend {
		var mu sync.Mutex
		return changed{Backend: good, do: func(ctx context.Context, key string, cmd []string) (any, error) {
			if !mu.TryLock() {
				return nil, errors.New("busy")
			}
			defer mu.Unlock()
			time.Sleep(time.Millisecond)
			return good.Do(ctx, key, cmd)
		}}
	}},
	{"replica-reader", "fails ReadTx for one element", func(good replset.Backend) replset.Backend {
		return brokenReader{good.(whole), func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			list, err := good.Tx(ctx, key, cmds)
			for _, v := range list {
				if failed, ok := v.(error); ok {
					return nil, failed
				}
			}
			return list, err
		}}
	}},
	{"replica-reader", "returns the replies of MULTI as well", func(good replset.Backend) replset.Backend {
		return brokenReader{good.(whole), func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			list, err := good.Tx(ctx, key, cmds)
			return append([]any{"OK"}, list...), err
		}}
	}},
	{"replica-reader-context", "ignores the context of ReadTx", func(good replset.Backend) replset.Backend {
		return brokenReader{good.(whole), func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			return good.Tx(context.WithoutCancel(ctx), key, cmds)
		}}
	}},
}

// replyBox is the one place where a broken backend keeps its replies.
var replyBox = make(chan any, 64)

// oneByOne runs a Tx without a transaction, as a client does that splits it.
func oneByOne(good replset.Backend) replset.Backend {
	return changed{Backend: good, tx: func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
		list := make([]any, len(cmds))
		var first error
		for i, cmd := range cmds {
			v, err := good.Do(ctx, key, cmd)
			if list[i] = v; err != nil {
				list[i] = err
				if code(err) == "ERR" {
					first = err
				}
			}
			time.Sleep(50 * time.Microsecond) // as a round trip takes
		}
		if first != nil {
			return nil, first
		}
		return list, nil
	}}
}

// promptly is longer than a suite waits for a method whose context has ended.
const promptly = time.Second

// code is the first word of a server's error, or "" for any other error.
func code(err error) string {
	word, _, ok := strings.Cut(err.Error(), " ")
	if !ok || word == "" || strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return ""
	}
	return word
}
