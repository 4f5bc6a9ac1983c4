// Package broken is a table of shards that each break one rule of
// tiercache.Shard, over one in memory. Suites use it to show that they can fail:
// tiercachetest here, package conformance from its own module.
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

	"github.com/shardkit/shardkit/tiercache"
)

// A Defect is one way to break the contract.
type Defect struct {
	Rule string // the name of the rule that forbids it: "reply-shapes"
	Name string // what the shard does, in the third person

	breaks func(good tiercache.Shard) tiercache.Shard
}

// New returns a shard with the defect, over a server of its own.
func (d Defect) New() tiercache.Shard { return d.breaks(Whole()) }

// Defects are all of them; every rule of tiercachetest has one at least.
var Defects = []Defect{
	{"reply-shapes", "returns numbers as strings", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if n, ok := v.(int64); ok {
				return strconv.FormatInt(n, 10)
			}
			return v
		})
	}},
	{"reply-shapes", "reads numbers out of strings", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if s, ok := v.(string); ok {
				if n, err := strconv.ParseInt(s, 10, 64); err == nil {
					return n
				}
			}
			return v
		})
	}},
	{"reply-shapes", "returns []byte", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if s, ok := v.(string); ok {
				return []byte(s)
			}
			return v
		})
	}},
	{"reply-shapes", "returns OK as nil", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if v == "OK" {
				return nil
			}
			return v
		})
	}},
	{"reply-shapes", "drops nil from a list", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if list, ok := v.([]any); ok {
				return slices.DeleteFunc(list, func(e any) bool { return e == nil })
			}
			return v
		})
	}},
	{"missing-key-is-nil", "returns an error for a missing key", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if v == nil {
				return errors.New("redis: nil")
			}
			return v
		})
	}},
	{"missing-key-is-nil", "returns an empty string for a missing key", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if v == nil {
				return ""
			}
			return v
		})
	}},
	{"resp2-shapes", "returns a map", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(cmd []string, v any) any {
			if len(cmd) > 0 && cmd[0] == "HGETALL" {
				return map[any]any{"f": "v"}
			}
			return v
		})
	}},
	{"resp2-shapes", "writes doubles as Go does", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(cmd []string, v any) any {
			if s, ok := v.(string); ok && cmd[0] == "ZSCORE" {
				f, _ := strconv.ParseFloat(s, 64)
				return fmt.Sprint(f)
			}
			return v
		})
	}},
	{"resp2-shapes", "nests members and scores", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(cmd []string, v any) any {
			if list, ok := v.([]any); ok && cmd[0] == "ZRANGE" {
				return []any{list[:2], list[2:]}
			}
			return v
		})
	}},
	{"script-replies", "flattens lists", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			list, ok := v.([]any)
			if !ok {
				return v
			}
			var flat []any
			for _, e := range list {
				if inner, nested := e.([]any); nested {
					flat = append(flat, inner...)
				} else {
					flat = append(flat, e)
				}
			}
			return flat
		})
	}},
	{"script-replies", "passes integers through a float32", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if list, ok := v.([]any); ok {
				for i, e := range list {
					if n, ok := e.(int64); ok {
						list[i] = int64(float32(n + 1))
					}
				}
			}
			return v
		})
	}},
	{"server-text-first", "returns nil for an error", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if _, failed := v.(error); failed {
				return nil
			}
			return v
		})
	}},
	{"server-text-first", "puts its own name first", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if err, failed := v.(error); failed {
				return fmt.Errorf("mine: %w", err)
			}
			return v
		})
	}},
	{"server-text-first", "returns an error as a reply", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, do: func(ctx context.Context, cmd []string) (any, error) {
			v, err := good.Do(ctx, cmd)
			if err != nil {
				return err, nil
			}
			return v, nil
		}}
	}},
	{"refused-commands", "takes a refused command for done", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, do: func(ctx context.Context, cmd []string) (any, error) {
			v, err := good.Do(ctx, cmd)
			if err != nil && strings.Contains(err.Error(), "unknown command") {
				return nil, nil
			}
			return v, err
		}}
	}},
	{"other-errors-look-different", "dresses an ended context as the server's error", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if err, failed := v.(error); failed && ofContext(err) {
				return fmt.Errorf("TIMEOUT %w", err)
			}
			return v
		})
	}},
	{"binary-safe", "cuts strings at NUL", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if s, ok := v.(string); ok {
				s, _, _ = strings.Cut(s, "\x00")
				return s
			}
			return v
		})
	}},
	{"binary-safe", "mends broken UTF-8", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if s, ok := v.(string); ok {
				return strings.ToValidUTF8(s, "?")
			}
			return v
		})
	}},
	{"large-value", "cuts values at 1 MB", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if s, ok := v.(string); ok && len(s) > 1<<20 {
				return s[:1<<20]
			}
			return v
		})
	}},
	{"pipeline-in-order", "returns the replies as they come", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, pipeline: func(ctx context.Context, cmds [][]string) []any {
			list := good.Pipeline(ctx, cmds)
			slices.Reverse(list)
			return list
		}}
	}},
	{"pipeline-in-order", "sends a long pipeline in two parts at once", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, pipeline: func(ctx context.Context, cmds [][]string) []any {
			if len(cmds) < 1000 {
				return good.Pipeline(ctx, cmds)
			}
			late := good.Pipeline(ctx, cmds[len(cmds)/2:])
			return append(good.Pipeline(ctx, cmds[:len(cmds)/2]), late...)
		}}
	}},
	{"pipeline-isolates", "stops at the first error", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, pipeline: func(ctx context.Context, cmds [][]string) []any {
			list := good.Pipeline(ctx, cmds)
			for i, v := range list {
				if err, failed := v.(error); failed {
					for ; i < len(list); i++ {
						list[i] = err
					}
					break
				}
			}
			return list
		}}
	}},
	{"pipeline-of-none", "returns a reply for no command", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, pipeline: func(ctx context.Context, cmds [][]string) []any {
			if len(cmds) == 0 {
				return []any{nil}
			}
			return good.Pipeline(ctx, cmds)
		}}
	}},
	{"tx-in-order", "returns the replies of MULTI as well", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, tx: func(ctx context.Context, cmds [][]string) ([]any, error) {
			list, err := good.Tx(ctx, cmds)
			return append([]any{"OK"}, list...), err
		}}
	}},
	{"tx-element-errors", "fails for one element", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, tx: func(ctx context.Context, cmds [][]string) ([]any, error) {
			list, err := good.Tx(ctx, cmds)
			for _, v := range list {
				if failed, ok := v.(error); ok {
					return nil, failed
				}
			}
			return list, err
		}}
	}},
	{"tx-all-or-none", "runs the commands one by one", oneByOne},
	{"tx-atomic", "runs the commands one by one", oneByOne},
	{"ended-context", "ignores the context", func(good tiercache.Shard) tiercache.Shard {
		return calls(good, func(ctx context.Context, cmds [][]string, run func(context.Context, [][]string) ([]any, error)) ([]any, error) {
			return run(context.WithoutCancel(ctx), cmds)
		})
	}},
	{"ended-context", "sends all the same", func(good tiercache.Shard) tiercache.Shard {
		return calls(good, func(ctx context.Context, cmds [][]string, run func(context.Context, [][]string) ([]any, error)) ([]any, error) {
			list, err := run(context.WithoutCancel(ctx), cmds)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return list, err
		})
	}},
	{"ended-context", "forgets which context it was", func(good tiercache.Shard) tiercache.Shard {
		return replies(good, func(_ []string, v any) any {
			if err, failed := v.(error); failed && ofContext(err) {
				return errors.New("mine: time-out")
			}
			return v
		})
	}},
	{"deadline-is-kept", "waits for the server", func(good tiercache.Shard) tiercache.Shard {
		return calls(good, func(ctx context.Context, cmds [][]string, run func(context.Context, [][]string) ([]any, error)) ([]any, error) {
			list, err := run(context.WithoutCancel(ctx), cmds)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return list, err
		})
	}},
	{"deadline-is-kept", "gives the next caller the late reply", func(good tiercache.Shard) tiercache.Shard {
		var mu sync.Mutex
		late := 0
		return calls(good, func(ctx context.Context, cmds [][]string, run func(context.Context, [][]string) ([]any, error)) ([]any, error) {
			list, err := run(ctx, cmds)
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() != nil {
				late++
			} else if late > 0 {
				late--
				return make([]any, len(cmds)), nil
			}
			return list, err
		})
	}},
	{"slices-unchanged", "writes into the commands", func(good tiercache.Shard) tiercache.Shard {
		return calls(good, func(ctx context.Context, cmds [][]string, run func(context.Context, [][]string) ([]any, error)) ([]any, error) {
			for _, cmd := range cmds {
				cmd[0] = strings.ToUpper(cmd[0])
			}
			return run(ctx, cmds)
		})
	}},
	{"slices-unchanged", "appends to the commands", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, tx: func(ctx context.Context, cmds [][]string) ([]any, error) {
			_ = append(cmds, []string{"EXEC"})
			return good.Tx(ctx, cmds)
		}}
	}},
	{"slices-not-kept", "sends late what the slice holds then", func(good tiercache.Shard) tiercache.Shard {
		var mu sync.Mutex
		var late []string
		return calls(good, func(ctx context.Context, cmds [][]string, run func(context.Context, [][]string) ([]any, error)) ([]any, error) {
			mu.Lock()
			defer mu.Unlock()
			if late != nil {
				_, _ = good.Do(context.WithoutCancel(ctx), late)
				late = nil
			}
			list, err := run(ctx, cmds)
			if cmds[0][0] == "SET" {
				late = cmds[0]
			}
			return list, err
		})
	}},
	{"concurrent-use", "hands a reply to whoever asks first", func(good tiercache.Shard) tiercache.Shard {
		box := make(chan any, 64)
		return changed{Shard: good, do: func(ctx context.Context, cmd []string) (any, error) {
			v, err := good.Do(ctx, cmd)
			box <- v
			time.Sleep(time.Millisecond) // long enough for another call to come between
			return <-box, err
		}}
	}},
	{"messages-in-order", "drops what comes while onMessage runs", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			n := 0
			return good.Subscribe(ctx, channels, onReady, func(channel, payload string) {
				if n++; n%1000 != 0 {
					onMessage(channel, payload)
				}
			})
		})
	}},
	{"messages-in-order", "delivers each in a goroutine of its own", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			return good.Subscribe(ctx, channels, onReady, func(channel, payload string) { go onMessage(channel, payload) })
		})
	}},
	{"messages-in-order", "delivers each twice", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			return good.Subscribe(ctx, channels, onReady, func(channel, payload string) {
				onMessage(channel, payload)
				onMessage(channel, payload)
			})
		})
	}},
	{"messages-in-order", "delivers each channel in turn", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			type message struct{ channel, payload string }
			var kept []message
			return good.Subscribe(ctx, channels, onReady, func(channel, payload string) {
				if channel != channels[0] && len(kept) < 10 {
					kept = append(kept, message{channel, payload})
					return
				}
				onMessage(channel, payload)
				for _, m := range kept {
					onMessage(m.channel, m.payload)
				}
				kept = nil
			})
		})
	}},
	{"messages-in-order", "subscribes to all channels", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			return good.Subscribe(ctx, append([]string{strings.TrimSuffix(channels[0], "a") + "d"}, channels...), onReady, onMessage)
		})
	}},
	{"ready-means-subscribed", "calls onReady before the server has answered", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			onReady(func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil })
			time.Sleep(10 * time.Millisecond)
			return good.Subscribe(ctx, channels, func(func(context.Context) error) {}, onMessage)
		})
	}},
	{"ready-means-subscribed", "calls onReady when the first channel is confirmed", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			return good.Subscribe(ctx, channels[:1], onReady, onMessage)
		})
	}},
	{"ping-comes-last", "pings on another connection", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			return good.Subscribe(ctx, channels, func(func(context.Context) error) {
				onReady(func(ctx context.Context) error {
					_, err := good.Do(ctx, []string{"PING"})
					return err
				})
			}, onMessage)
		})
	}},
	{"ping-comes-last", "answers a ping before the message is handled", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			type message struct{ channel, payload string }
			queue := make(chan message, 1000)
			done := make(chan struct{})
			go func() {
				defer close(done)
				for m := range queue {
					onMessage(m.channel, m.payload)
				}
			}()
			err := good.Subscribe(ctx, channels, onReady, func(channel, payload string) { queue <- message{channel, payload} })
			close(queue)
			<-done
			return err
		})
	}},
	{"pings-at-once", "answers one ping at a time and forgets the rest", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			return good.Subscribe(ctx, channels, func(ping func(context.Context) error) {
				var mu sync.Mutex
				onReady(func(ctx context.Context) error {
					if !mu.TryLock() {
						return errors.New("busy")
					}
					defer mu.Unlock()
					time.Sleep(time.Millisecond)
					return ping(ctx)
				})
			}, onMessage)
		})
	}},
	{"ping-context", "ignores the context of a ping", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			return good.Subscribe(ctx, channels, func(ping func(context.Context) error) {
				onReady(func(ctx context.Context) error { return ping(context.WithoutCancel(ctx)) })
			}, onMessage)
		})
	}},
	{"ping-context", "ends the subscription when a ping takes too long", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			life, end := context.WithCancel(ctx)
			defer end()
			return good.Subscribe(life, channels, func(ping func(context.Context) error) {
				onReady(func(ctx context.Context) error {
					err := ping(ctx)
					if ctx.Err() != nil {
						end()
					}
					return err
				})
			}, onMessage)
		})
	}},
	{"messages-hold-any-bytes", "mends broken UTF-8 in messages", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			return good.Subscribe(ctx, channels, onReady, func(channel, payload string) { onMessage(channel, strings.ToValidUTF8(payload, "?")) })
		})
	}},
	{"subscribe-until-ctx-ends", "goes on when the context ends", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			life, end := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer end()
			return good.Subscribe(life, channels, onReady, onMessage)
		})
	}},
	{"subscribe-until-ctx-ends", "calls the end of its context a success", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			err := good.Subscribe(ctx, channels, onReady, onMessage)
			if ctx.Err() != nil {
				return nil
			}
			return err
		})
	}},
	{"nothing-after-return", "leaves its reader running", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			life, end := context.WithCancel(context.WithoutCancel(ctx))
			go good.Subscribe(life, channels, onReady, onMessage)
			<-ctx.Done()
			time.AfterFunc(time.Second, end)
			return ctx.Err()
		})
	}},
	{"nothing-after-return", "pings without a subscription", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			return good.Subscribe(ctx, channels, func(ping func(context.Context) error) {
				onReady(func(pingCtx context.Context) error {
					if ctx.Err() != nil {
						return nil
					}
					return ping(pingCtx)
				})
			}, onMessage)
		})
	}},
	{"loss-ends-it", "subscribes again by itself", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			err := good.Subscribe(ctx, channels, onReady, onMessage)
			for ctx.Err() == nil {
				err = good.Subscribe(ctx, channels, func(func(context.Context) error) {}, onMessage)
			}
			return err
		})
	}},
	{"loss-ends-it", "says that a context ended", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			if err := good.Subscribe(ctx, channels, onReady, onMessage); ctx.Err() != nil {
				return err
			}
			return context.Canceled
		})
	}},
	{"no-channel-is-an-error", "waits for messages of no channel", func(good tiercache.Shard) tiercache.Shard {
		return listens(good, func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
			if len(channels) == 0 {
				<-ctx.Done()
				return ctx.Err()
			}
			return good.Subscribe(ctx, channels, onReady, onMessage)
		})
	}},
	{"track-tells-changes", "tells of every key", func(good tiercache.Shard) tiercache.Shard {
		return tracks(good, func(good tiercache.Tracker) track {
			return func(ctx context.Context, channels []string, _ string, onReady func(func(context.Context) error), onMessage func(string, string), onChange func([]string)) error {
				return good.Track(ctx, channels, "", onReady, onMessage, onChange)
			}
		})
	}},
	{"track-tells-changes", "tells of a key once", func(good tiercache.Shard) tiercache.Shard {
		return tracks(good, func(good tiercache.Tracker) track {
			return func(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(string, string), onChange func([]string)) error {
				told := map[string]bool{}
				return good.Track(ctx, channels, prefix, onReady, onMessage, func(keys []string) {
					keys = slices.DeleteFunc(keys, func(key string) bool { return told[key] })
					for _, key := range keys {
						told[key] = true
					}
					onChange(keys)
				})
			}
		})
	}},
	{"track-tells-changes", "does not tell of a life that is over", func(good tiercache.Shard) tiercache.Shard {
		return tracks(good, func(tracker tiercache.Tracker) track {
			return func(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(string, string), onChange func([]string)) error {
				mortal := map[string]bool{}
				return tracker.Track(ctx, channels, prefix, onReady, onMessage, func(keys []string) {
					onChange(slices.DeleteFunc(keys, func(key string) bool {
						life, err := good.Do(ctx, []string{"PTTL", key})
						gone := err == nil && life == int64(-2) && mortal[key]
						mortal[key] = err == nil && life.(int64) > 0
						return gone
					}))
				})
			}
		})
	}},
	{"track-ping-comes-last", "tells of changes on another connection than the ping's", func(good tiercache.Shard) tiercache.Shard {
		return tracks(good, func(good tiercache.Tracker) track {
			return func(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(string, string), onChange func([]string)) error {
				var wg sync.WaitGroup
				defer wg.Wait()
				var one sync.Mutex
				locked := func(f func()) {
					one.Lock()
					defer one.Unlock()
					f()
				}
				return good.Track(ctx, channels, prefix, onReady, func(channel, payload string) {
					locked(func() { onMessage(channel, payload) })
				}, func(keys []string) {
					wg.Go(func() {
						time.Sleep(time.Millisecond)
						locked(func() { onChange(keys) })
					})
				})
			}
		})
	}},
	{"track-ends", "takes a lost connection for a quiet one", func(good tiercache.Shard) tiercache.Shard {
		return tracks(good, func(good tiercache.Tracker) track {
			return func(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(string, string), onChange func([]string)) error {
				err := good.Track(ctx, channels, prefix, onReady, onMessage, onChange)
				if ctx.Err() == nil {
					<-ctx.Done()
					err = ctx.Err()
				}
				return err
			}
		})
	}},
	{"track-ends", "says that a context ended", func(good tiercache.Shard) tiercache.Shard {
		return tracks(good, func(good tiercache.Tracker) track {
			return func(ctx context.Context, channels []string, prefix string, onReady func(func(context.Context) error), onMessage func(string, string), onChange func([]string)) error {
				if err := good.Track(ctx, channels, prefix, onReady, onMessage, onChange); ctx.Err() != nil {
					return err
				}
				return context.Canceled
			}
		})
	}},
	{"dedicate-is-a-pipeline", "stops at the first error", func(good tiercache.Shard) tiercache.Shard {
		return dedicates(good, func(pipeline func(context.Context, [][]string) []any, done func()) (func(context.Context, [][]string) []any, func()) {
			return func(ctx context.Context, cmds [][]string) []any {
				replies := make([]any, len(cmds))
				for i, cmd := range cmds {
					replies[i] = pipeline(ctx, [][]string{cmd})[0]
					if _, failed := replies[i].(error); failed {
						break
					}
				}
				return replies
			}, done
		})
	}},
	{"dedicate-is-a-pipeline", "sends what nobody waits for", func(good tiercache.Shard) tiercache.Shard {
		return dedicates(good, func(pipeline func(context.Context, [][]string) []any, done func()) (func(context.Context, [][]string) []any, func()) {
			return func(ctx context.Context, cmds [][]string) []any {
				replies := pipeline(context.WithoutCancel(ctx), cmds)
				for i := range replies {
					if ctx.Err() != nil {
						replies[i] = ctx.Err()
					}
				}
				return replies
			}, done
		})
	}},
	{"dedicate-is-one-connection", "shares the connections of all", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, dedicate: func() (func(context.Context, [][]string) []any, func()) { return good.Pipeline, func() {} }}
	}},
	{"dedicate-is-one-connection", "makes another connection for each call", func(good tiercache.Shard) tiercache.Shard {
		return changed{Shard: good, dedicate: func() (func(context.Context, [][]string) []any, func()) {
			return func(ctx context.Context, cmds [][]string) []any {
				pipeline, done := good.(tiercache.Dedicator).Dedicate()
				defer done()
				return pipeline(ctx, cmds)
			}, func() {}
		}}
	}},
	{"dedicate-is-one-connection", "keeps the connection for ever", func(good tiercache.Shard) tiercache.Shard {
		return dedicates(good, func(pipeline func(context.Context, [][]string) []any, _ func()) (func(context.Context, [][]string) []any, func()) {
			return pipeline, func() {}
		})
	}},
	{"dedicate-is-one-connection", "does not connect again", func(good tiercache.Shard) tiercache.Shard {
		return dedicates(good, func(pipeline func(context.Context, [][]string) []any, done func()) (func(context.Context, [][]string) []any, func()) {
			var first any
			return func(ctx context.Context, cmds [][]string) []any {
				replies := pipeline(ctx, cmds)
				if first == nil {
					first = replies[0]
				}
				if len(cmds) == 1 && strings.EqualFold(cmds[0][0], "CLIENT") && replies[0] != first {
					replies[0] = errors.New("broken: the connection was closed")
				}
				return replies
			}, done
		})
	}},
}

// oneByOne runs a Tx without a transaction, as a client does that splits it.
func oneByOne(good tiercache.Shard) tiercache.Shard {
	return changed{Shard: good, tx: func(ctx context.Context, cmds [][]string) ([]any, error) {
		list := make([]any, len(cmds))
		var first error
		for i, cmd := range cmds {
			v, err := good.Do(ctx, cmd)
			if list[i] = v; err != nil {
				list[i], first = err, err
			}
			time.Sleep(50 * time.Microsecond) // as a round trip takes
		}
		if first != nil && strings.Contains(first.Error(), "unknown command") {
			return nil, first
		}
		return list, nil
	}}
}

func ofContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
