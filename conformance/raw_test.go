package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// raw is a backend without a client, over the harness's own connections, one a call. It is here to be broken: see defects_test.go.
type raw struct {
	nodes map[string]*harness.Node // by address
	bad   flaws

	mu    sync.Mutex
	table [slotmap.Slots]*harness.Node // a stale copy is what MOVED corrects
	shut  bool
}

// flaws are what may be wrong with a raw backend.
type flaws struct {
	swallowsMoved    bool // returns nil for it
	ignoresAsk       bool
	asksWithoutWord  bool // follows ASK without ASKING
	splitsTx         bool // follows redirects of a Tx command by command
	followsForever   bool
	sendsAgain       bool // after a time-out
	waitsRegardless  bool // of the context
	failsTogether    bool // one node's failure fails all
	forgetsElsewhere bool // redirected commands of a pipeline run twice
	staleForever     bool // keeps the first slot map
	closedByError    bool // a call that fails closes the client
}

const rawRedirects = 8

func newRaw(c *harness.Cluster, bad flaws) (*raw, error) {
	r := &raw{nodes: map[string]*harness.Node{}, bad: bad}
	for _, n := range c.Nodes() {
		r.nodes[n.Addr()] = n
	}
	return r, r.reload(context.Background())
}

// reload reads the slot map from the first node that answers.
func (r *raw) reload(ctx context.Context) error {
	var last error
	for _, n := range r.nodes {
		v, err := n.Do(ctx, "CLUSTER", "SLOTS")
		if err != nil {
			last = err
			continue
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range v.([]any) {
			e := e.([]any)
			master := e[2].([]any)
			for slot := e[0].(int64); slot <= e[1].(int64); slot++ {
				r.table[slot] = r.nodes[fmt.Sprint(master[0], ":", master[1])]
			}
		}
		return nil
	}
	return last
}

func (r *raw) owner(key string) *harness.Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.table[slotmap.Slot(key)]
}

// send runs commands on one connection; a reply of EXEC is not taken apart.
func (r *raw) send(ctx context.Context, n *harness.Node, cmds ...[]string) []any {
	if r.bad.waitsRegardless {
		ctx = context.WithoutCancel(ctx)
	}
	r.mu.Lock()
	shut := r.shut
	r.mu.Unlock()
	if shut {
		return repeat(errors.New("raw: client is closed"), len(cmds))
	}
	if err := ctx.Err(); err != nil {
		if r.bad.closedByError {
			r.mu.Lock()
			r.shut = true
			r.mu.Unlock()
		}
		return repeat(fmt.Errorf("raw: nothing was sent: %w", err), len(cmds))
	}
	fresh := make([][]string, len(cmds))
	for i, cmd := range cmds {
		fresh[i] = append([]string(nil), cmd...)
	}
	replies, err := n.Pipeline(ctx, fresh...)
	if err != nil && r.bad.sendsAgain {
		again, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*1e6)
		replies, err = n.Pipeline(again, fresh...)
		cancel()
	}
	if err != nil {
		if !r.bad.staleForever {
			// A master that died is replaced some time.
			again, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*1e6)
			_ = r.reload(again)
			cancel()
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("raw: %w: %w", ctx.Err(), err)
		}
		return repeat(err, len(cmds))
	}
	return replies
}

func repeat(err error, n int) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = err
	}
	return list
}

// redirect tells where an error sends a command.
func (r *raw) redirect(v any) (n *harness.Node, ask, is bool) {
	err, failed := v.(error)
	if !failed {
		return nil, false, false
	}
	words := strings.Fields(err.Error())
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return nil, false, false
	}
	return r.nodes[words[2]], words[0] == "ASK", true
}

// whole runs commands on key's master, and redirects them all together.
func (r *raw) whole(ctx context.Context, key string, cmds ...[]string) []any {
	n, ask := r.owner(key), false
	for hop := 0; ; hop++ {
		batch := cmds
		if ask && !r.bad.asksWithoutWord {
			batch = append([][]string{{"ASKING"}}, cmds...)
		}
		replies := r.send(ctx, n, batch...)
		replies = replies[len(batch)-len(cmds):]
		var to *harness.Node
		for _, v := range replies {
			if next, asked, is := r.redirect(v); is {
				to, ask = next, asked
				break
			}
		}
		switch {
		case to == nil, hop == rawRedirects && !r.bad.followsForever:
			return replies
		case ask && r.bad.ignoresAsk:
			return replies
		case !ask && r.bad.swallowsMoved:
			return make([]any, len(cmds))
		case !ask && !r.bad.staleForever:
			_ = r.reload(ctx)
		}
		n = to
	}
}

func (r *raw) Do(ctx context.Context, key string, cmd []string) (any, error) {
	v := r.whole(ctx, key, cmd)[0]
	if err, failed := v.(error); failed {
		return nil, err
	}
	return v, nil
}

func (r *raw) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	replies := make([]any, len(cmds))
	groups := map[*harness.Node][]int{}
	for i, key := range keys {
		groups[r.owner(key)] = append(groups[r.owner(key)], i)
	}
	var wg sync.WaitGroup
	for n, members := range groups {
		wg.Go(func() {
			batch := make([][]string, len(members))
			for i, m := range members {
				batch[i] = cmds[m]
			}
			for i, v := range r.send(ctx, n, batch...) {
				replies[members[i]] = v
			}
		})
	}
	wg.Wait()
	for i, v := range replies {
		if err, failed := v.(error); failed && r.bad.failsTogether {
			return repeat(err, len(cmds))
		}
		if _, _, is := r.redirect(v); is {
			replies[i] = r.whole(ctx, keys[i], cmds[i])[0]
			if r.bad.forgetsElsewhere {
				replies[i] = r.whole(ctx, keys[i], cmds[i])[0]
			}
		}
	}
	return replies
}

func (r *raw) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	if r.bad.splitsTx {
		return r.txEach(ctx, key, cmds)
	}
	all := append(append([][]string{{"MULTI"}}, cmds...), []string{"EXEC"})
	return executed(r.whole(ctx, key, all...), len(cmds))
}

// executed takes the transaction's replies, or the error that kept it from running.
func executed(replies []any, n int) ([]any, error) {
	if list, ok := replies[len(replies)-1].([]any); ok && len(list) == n {
		for i, v := range list {
			if refused, ok := v.(harness.ReplyError); ok {
				list[i] = error(refused)
			}
		}
		return list, nil
	}
	for _, v := range replies {
		if err, failed := v.(error); failed {
			return nil, err
		}
	}
	return nil, errors.New("raw: EXEC gave no replies")
}

// txEach follows redirects of a transaction command by command, as some clients do.
func (r *raw) txEach(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	list, err := executed(r.send(ctx, r.owner(key), append(append([][]string{{"MULTI"}}, cmds...), []string{"EXEC"})...), len(cmds))
	if err == nil || !strings.HasPrefix(err.Error(), "MOVED") && !strings.HasPrefix(err.Error(), "ASK") {
		return list, err
	}
	return r.Pipeline(ctx, keysOf(key, len(cmds)), cmds), nil
}

func keysOf(key string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = key
	}
	return keys
}

// rawTarget checks a raw backend over a cluster.
func rawTarget(c *harness.Cluster, bad flaws) Target {
	return Target{
		Name: "raw", Cluster: c, Profiles: []Profile{Replset},
		Backend: func(context.Context, Connection) (replset.Backend, func(), error) {
			r, err := newRaw(c, bad)
			return r, nil, err
		},
	}
}
