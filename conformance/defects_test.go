package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/replsettest/broken"
	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/slotmap"
	"github.com/shardkit/shardkit/tiercache"
	shardbroken "github.com/shardkit/shardkit/tiercache/tiercachetest/broken"
)

// A defect is a deliberately broken implementation, and the case that must catch it.
type defect struct {
	does   string // in the third person
	caught string // by the case of this id
	target Target
}

func (d defect) live() bool { return d.target.Cluster != nil || d.target.Shards != nil }

// Every case catches a defect that was made for it. With -v the table is printed. Those of tier fault wait for servers and time-outs, and
// are left to SHARDKIT_LONG=1.
func TestDefects(t *testing.T) {
	cluster := defectCluster(t)
	long := os.Getenv("SHARDKIT_LONG") == "1"
	all := slices.Concat(contractDefects(), slotDefects(cluster), ringDefects(), liveDefects(cluster), shardRuleDefects(), shardDefects(t))
	unproved := map[string]bool{}
	for _, c := range Cases() {
		unproved[c.ID] = true
	}
	rows := make([]string, len(all))
	reports := make([]Report, len(all))
	run := func(i int) {
		target := all[i].target
		target.Name = "broken"
		target.Only = []string{all[i].caught}
		reports[i], _ = Execute(t.Context(), target) // what it leaves behind is its own fault
	}
	check := func(t *testing.T, i int) {
		d, report := all[i], reports[i]
		at := slices.IndexFunc(report.Cases, func(r Result) bool { return r.ID == d.caught })
		if at < 0 {
			t.Fatalf("there is no case %s", d.caught)
		}
		r := report.Cases[at]
		first, _, _ := strings.Cut(r.Seen, "\n")
		rows[i] = fmt.Sprintf("%s\t%s %s\t%.160s", d.does, r.ID, r.Name, first)
		if r.Status != StatusFail || r.Reason == ReasonPanic && !strings.HasPrefix(d.does, "panics") {
			t.Errorf("a backend that %s: %s is %s (%s) %s, want fail", d.does, d.caught, r.Status, r.Reason, r.Seen)
		}
	}
	var inMemory sync.WaitGroup
	for i, d := range all {
		delete(unproved, d.caught)
		if !d.live() {
			inMemory.Go(func() { run(i) }) // at once: most of them wait
		}
	}
	inMemory.Wait()
	for i, d := range all {
		switch {
		case !d.live():
		case long || !strings.Contains(d.caught, "-2"):
			run(i)
		default:
			continue
		}
		t.Run(d.caught+" "+d.does, func(t *testing.T) { check(t, i) })
	}
	for id := range unproved {
		t.Errorf("no defect proves that %s can fail", id)
	}
	if testing.Verbose() {
		tab := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(tab, "DEFECT\tCAUGHT BY\tFIRST LINE")
		for _, row := range rows {
			if row != "" {
				fmt.Fprintln(tab, row)
			}
		}
		tab.Flush()
	}
}

// defectCluster is one for all defects that take real servers.
func defectCluster(t *testing.T) *harness.Cluster {
	return harnesstest.Cluster(t, harness.Options{Replicas: 1, Private: true, Args: []string{"--cluster-allow-replica-migration", "no"}})
}

func contractDefects() []defect {
	ids := map[string]string{}
	for _, c := range contractCases() {
		ids[c.Name] = c.ID
	}
	var list []defect
	for _, d := range broken.Defects {
		list = append(list, defect{d.Name, ids[d.Rule], Target{
			Serverless: true, Features: []Feature{ReplicaReader}, Profiles: []Profile{Replset},
			Backend: func(context.Context, Connection) (replset.Backend, func(), error) { return d.New(), nil, nil },
		}})
	}
	return list
}

func shardRuleDefects() []defect {
	ids := map[string]string{}
	for _, c := range shardRuleCases() {
		ids[c.Name] = c.ID
	}
	var list []defect
	for _, d := range shardbroken.Defects {
		list = append(list, defect{d.Name, ids[d.Rule], Target{
			Serverless: true, Features: []Feature{Tracker, Dedicator}, Profiles: []Profile{Tiercache},
			Shard: func(context.Context, Connection) (tiercache.Shard, func(), error) { return d.New(), nil, nil },
		}})
	}
	return list
}

// changedShard is a shard some of whose methods are replaced.
type changedShard struct {
	tiercache.Shard
	do        func(ctx context.Context, cmd []string) (any, error)
	subscribe func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error
}

func (s changedShard) Do(ctx context.Context, cmd []string) (any, error) {
	if s.do == nil {
		return s.Shard.Do(ctx, cmd)
	}
	return s.do(ctx, cmd)
}

func (s changedShard) Subscribe(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
	if s.subscribe == nil {
		return s.Shard.Subscribe(ctx, channels, onReady, onMessage)
	}
	return s.subscribe(ctx, channels, onReady, onMessage)
}

func shardDefects(t *testing.T) []defect {
	// All shards of one target are of one server, which has an address as somebody else's does: cases of tier live run.
	with := func(change func(good tiercache.Shard) tiercache.Shard) Target {
		server := shardbroken.Whole()
		return Target{
			Profiles: []Profile{Tiercache}, Addrs: []string{"memory:1"},
			Shard: func(context.Context, Connection) (tiercache.Shard, func(), error) { return change(server), nil, nil },
		}
	}
	// A real one, for what a frozen server does.
	shards := harnesstest.Shards(t, harness.Options{Shards: 1, Private: true})
	node := shards.Nodes()[0]
	return []defect{
		{"loses a notice", "TS-101", with(func(good tiercache.Shard) tiercache.Shard {
			return changedShard{Shard: good, subscribe: func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
				n := 0
				return good.Subscribe(ctx, channels, onReady, func(channel, payload string) {
					if n++; n%10 != 0 {
						onMessage(channel, payload)
					}
				})
			}}
		})},
		{"takes a lost subscription for a quiet one", "TS-102", with(func(good tiercache.Shard) tiercache.Shard {
			return changedShard{Shard: good, subscribe: func(ctx context.Context, channels []string, onReady func(func(context.Context) error), onMessage func(string, string)) error {
				err := good.Subscribe(ctx, channels, func(ping func(context.Context) error) {
					onReady(func(ctx context.Context) error {
						_, err := good.Do(ctx, []string{"PING"})
						return err
					})
				}, onMessage)
				if ctx.Err() != nil {
					return err
				}
				<-ctx.Done()
				return ctx.Err()
			}}
		})},
		{"sends a command again after a time-out", "TS-201", Target{
			Profiles: []Profile{Tiercache}, Shards: shards,
			Shard: func(_ context.Context, c Connection) (tiercache.Shard, func(), error) {
				return changedShard{Shard: shardbroken.Whole(), do: func(ctx context.Context, cmd []string) (any, error) {
					first, cancel := context.WithTimeout(ctx, c.Patience)
					defer cancel()
					v, err := node.Do(first, cmd...)
					if first.Err() != nil {
						v, err = node.Do(ctx, cmd...)
					}
					return v, err
				}}, nil, nil
			},
		}},
	}
}

func slotDefects(c *harness.Cluster) []defect {
	with := func(change func(*SlotFuncs)) Target {
		f := *shardkitSlots
		change(&f)
		return Target{Slots: &f}
	}
	lastBrace := func(f *SlotFuncs) {
		f.Slot = func(key string) uint16 {
			first, last := strings.IndexByte(key, '{'), strings.LastIndexByte(key, '}')
			if first >= 0 && last > first+1 {
				key = key[first+1 : last]
			}
			return plainCRC(key) % slotmap.Slots
		}
	}
	otherTag := func(f *SlotFuncs) {
		f.Tag = func(slot uint16) string {
			if slot == 9999 {
				return "0" + slotmap.Tag(slot) // an octal look, and another number
			}
			return slotmap.Tag(slot)
		}
	}
	list := []defect{
		{"counts the slots by another CRC", "SL-001", with(func(f *SlotFuncs) {
			f.Slot = func(key string) uint16 { return (plainCRC(key) ^ 0xffff) % slotmap.Slots }
		})},
		{"hashes nothing for an empty tag", "SL-002", with(func(f *SlotFuncs) {
			f.Slot = func(key string) uint16 {
				if strings.Contains(key, "{}") && strings.IndexByte(key, '{') == strings.Index(key, "{}") {
					return 0
				}
				return slotmap.Slot(key)
			}
		})},
		{"takes the last brace for the tag's end", "SL-002", with(lastBrace)},
		{"hashes runes, not bytes", "SL-003", with(func(f *SlotFuncs) {
			f.Slot = func(key string) uint16 { return slotmap.Slot(strings.ToValidUTF8(key, "?")) }
		})},
		{"has a tag that is not the smallest", "SL-004", with(func(f *SlotFuncs) {
			f.Tag = func(slot uint16) string {
				if slot != slotmap.Slot("42") {
					return slotmap.Tag(slot)
				}
				for n := 43; ; n++ {
					if digits := fmt.Sprint(n); slotmap.Slot(digits) == slot {
						return digits
					}
				}
			}
		})},
		{"names a replica by the key's own tag", "SL-005", with(func(f *SlotFuncs) {
			f.KeyFor = func(name, key string) string { return name + ":{" + slotmap.HashTag(key) + "}" }
		})},
		{"stops at the sixteenth byte", "SL-006", with(func(f *SlotFuncs) {
			f.Slot = func(key string) uint16 { return slotmap.Slot(key[:min(len(key), 16)]) }
		})},
		{"differs from the server over braces", "SL-007", with(lastBrace)},
		{"has a tag of another slot", "SL-008", with(otherTag)},
	}
	for i := range list {
		if list[i].caught >= "SL-007" {
			list[i].target.Cluster = c
		}
	}
	return list
}

// modulo is the placement that needs no ring: hash modulo nodes.
type modulo []string

func (m modulo) Locate(key string) string { return m.LocateN(key, 1)[0] }

func (m modulo) LocateN(key string, n int) []string {
	h := fnv.New32a()
	h.Write([]byte(key))
	var names []string
	for i := range min(n, len(m)) {
		names = append(names, m[(int(h.Sum32()%uint32(len(m)))+i)%len(m)])
	}
	return names
}

func newModulo(nodes []ring.Node, down ...string) modulo {
	var m modulo
	for _, n := range nodes {
		if !slices.Contains(down, n.Name) {
			m = append(m, n.Name)
		}
	}
	return m
}

// twice names the owner twice.
type twice struct{ Placement }

func (p twice) LocateN(key string, n int) []string {
	names := p.Placement.LocateN(key, n)
	if len(names) > 1 {
		names[1] = names[0]
	}
	return names
}

func ringDefects() []defect {
	with := func(f func(nodes []ring.Node, down ...string) Placement) Target {
		return Target{Profiles: []Profile{Ring}, Ring: func(nodes []ring.Node, down ...string) (Placement, error) { return f(nodes, down...), nil }}
	}
	good := ShardkitRing(nil)
	return []defect{
		{"counts nodes as they come", "RG-001", with(func(nodes []ring.Node, down ...string) Placement { return newModulo(nodes, down...) })},
		{"names a node twice", "RG-002", with(func(nodes []ring.Node, down ...string) Placement {
			p, _ := good(nodes, down...)
			return twice{p}
		})},
		{"takes a failure for a change of membership", "RG-003", with(func(nodes []ring.Node, down ...string) Placement { return newModulo(nodes, down...) })},
		{"moves keys between nodes that stay", "RG-004", with(func(nodes []ring.Node, down ...string) Placement { return newModulo(nodes, down...) })},
	}
}

// changed is a backend whose methods are replaced one by one.
type changed struct {
	replset.Backend
	do       func(ctx context.Context, key string, cmd []string) (any, error)
	pipeline func(ctx context.Context, keys []string, cmds [][]string) []any
	tx       func(ctx context.Context, key string, cmds [][]string) ([]any, error)
}

func (c changed) Do(ctx context.Context, key string, cmd []string) (any, error) {
	if c.do == nil {
		return c.Backend.Do(ctx, key, cmd)
	}
	return c.do(ctx, key, cmd)
}

func (c changed) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	if c.pipeline == nil {
		return c.Backend.Pipeline(ctx, keys, cmds)
	}
	return c.pipeline(ctx, keys, cmds)
}

func (c changed) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	if c.tx == nil {
		return c.Backend.Tx(ctx, key, cmds)
	}
	return c.tx(ctx, key, cmds)
}

// eachReply changes every reply, errors included.
func eachReply(b replset.Backend, change func(cmd []string, v any) any) replset.Backend {
	list := func(cmds [][]string, replies []any) []any {
		for i := range replies {
			replies[i] = change(cmds[i], replies[i])
		}
		return replies
	}
	return changed{
		Backend: b,
		do: func(ctx context.Context, key string, cmd []string) (any, error) {
			v, err := b.Do(ctx, key, cmd)
			if err != nil {
				v = err
			}
			v = change(cmd, v)
			if err, failed := v.(error); failed {
				return nil, err
			}
			return v, nil
		},
		pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
			return list(cmds, b.Pipeline(ctx, keys, cmds))
		},
		tx: func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
			replies, err := b.Tx(ctx, key, cmds)
			return list(cmds, replies), err
		},
	}
}

// losing does not send each nth script without keys, and answers with the last reply to one.
func losing(b replset.Backend, n int) replset.Backend {
	var mu sync.Mutex
	count := 0
	var last any
	return changed{Backend: b, do: func(ctx context.Context, key string, cmd []string) (any, error) {
		if !isScript(cmd) || cmd[2] != "0" {
			return b.Do(ctx, key, cmd)
		}
		mu.Lock()
		defer mu.Unlock()
		if count++; count%n == 0 {
			return last, nil
		}
		v, err := b.Do(ctx, key, cmd)
		if err == nil {
			last = v
		}
		return v, err
	}}
}

// lateReader asks the master for what it should ask a server replica.
type lateReader struct{ replset.Backend }

func (r lateReader) ReadTx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	return r.Tx(ctx, key, cmds)
}

func liveDefects(c *harness.Cluster) []defect {
	flawed := func(bad flaws) Target { return rawTarget(c, bad) }
	with := func(change func(b replset.Backend) replset.Backend) Target {
		t := rawTarget(c, flaws{})
		t.Features = []Feature{ReplicaReader}
		t.Backend = func(context.Context, Connection) (replset.Backend, func(), error) {
			b, err := newRaw(c, flaws{})
			if err != nil {
				return nil, nil, err
			}
			return change(b), nil, nil
		}
		return t
	}
	quick := func(t Target) Target {
		t.Slack = 0.3
		return t
	}
	return []defect{
		{"loses a script", "RS-101", with(func(b replset.Backend) replset.Backend { return losing(b, 5) })},
		{"loses a command of a pipeline", "RS-102", with(func(b replset.Backend) replset.Backend {
			return changed{Backend: b, pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
				if n := len(cmds); n > 1 && isScript(cmds[n-1]) {
					replies := b.Pipeline(ctx, keys[:n-1], cmds[:n-1])
					return append(replies, replies[n-2])
				}
				return b.Pipeline(ctx, keys, cmds)
			}}
		})},
		{"loses the last word in a Tx", "RS-103", with(func(b replset.Backend) replset.Backend {
			return changed{Backend: b, tx: func(ctx context.Context, key string, cmds [][]string) ([]any, error) {
				short := slices.Clone(cmds)
				for i, cmd := range cmds {
					if cmd[0] == "SADD" && len(cmd) > 3 {
						short[i] = cmd[:len(cmd)-1]
					}
				}
				return b.Tx(ctx, key, short)
			}}
		})},
		{"loses the last element of a list", "RS-104", with(func(b replset.Backend) replset.Backend {
			return eachReply(b, func(cmd []string, v any) any {
				if list, ok := v.([]any); ok && cmd[0] == "SINTER" && len(list) > 2 {
					return list[:len(list)-1]
				}
				return v
			})
		})},
		{"takes a missing key for an empty string", "RS-105", with(func(b replset.Backend) replset.Backend {
			return eachReply(b, func(_ []string, v any) any {
				if v == nil {
					return ""
				}
				return v
			})
		})},
		{"cuts words at 64 KiB", "RS-106", with(func(b replset.Backend) replset.Backend {
			cut := func(cmd []string) []string {
				short := slices.Clone(cmd)
				for i := range short {
					short[i] = short[i][:min(len(short[i]), 1<<16)]
				}
				return short
			}
			return changed{Backend: b, do: func(ctx context.Context, key string, cmd []string) (any, error) { return b.Do(ctx, key, cut(cmd)) }}
		})},
		{"cannot reach one slot", "RS-107", with(func(b replset.Backend) replset.Backend {
			return changed{Backend: b, pipeline: func(ctx context.Context, keys []string, cmds [][]string) []any {
				replies := b.Pipeline(ctx, keys, cmds)
				for i, key := range keys {
					if slotmap.Slot(key) == 16383 {
						replies[i] = errors.New("no connection")
					}
				}
				return replies
			}}
		})},
		{"drops one slot's error", "RS-108", with(func(b replset.Backend) replset.Backend {
			return eachReply(b, func(cmd []string, v any) any {
				if list, ok := v.([]any); ok && isScript(cmd) && len(list) > 1 {
					return list[:len(list)-1]
				}
				return v
			})
		})},
		{"loses some writer's script", "RS-109", with(func(b replset.Backend) replset.Backend { return losing(b, 4) })},
		{"answers the same question from a cache", "RS-110", with(func(b replset.Backend) replset.Backend {
			var mu sync.Mutex
			seen := map[string]any{}
			return changed{Backend: b, do: func(ctx context.Context, key string, cmd []string) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				id := fmt.Sprintf("%q", slices.DeleteFunc(slices.Clone(cmd), func(w string) bool { return strings.Contains(w, ":source:") }))
				if v, ok := seen[id]; ok && isScript(cmd) && cmd[2] == "0" {
					return v, nil
				}
				v, err := b.Do(ctx, key, cmd)
				if err == nil {
					seen[id] = v
				}
				return v, err
			}}
		})},
		{"takes CROSSSLOT for no members", "RS-111", with(func(b replset.Backend) replset.Backend {
			return eachReply(b, func(_ []string, v any) any {
				if err, failed := v.(error); failed && strings.Contains(err.Error(), "CROSSSLOT") {
					return []any{}
				}
				return v
			})
		})},
		{"closes the user's client after an error", "RS-112", flawed(flaws{closedByError: true})},
		{"reads from masters instead of replicas", "RS-113", with(func(b replset.Backend) replset.Backend { return lateReader{b} })},

		{"swallows MOVED", "RS-201", quick(flawed(flaws{swallowsMoved: true}))},
		{"runs what was redirected twice", "RS-202", flawed(flaws{forgetsElsewhere: true})},
		{"follows MOVED inside a transaction", "RS-203", flawed(flaws{splitsTx: true})},
		{"takes ASK for an error", "RS-204", flawed(flaws{ignoresAsk: true})},
		{"follows ASK without ASKING", "RS-204", flawed(flaws{asksWithoutWord: true})},
		{"splits a transaction over two nodes", "RS-205", flawed(flaws{splitsTx: true})},
		{"follows redirects for ever", "RS-206", quick(flawed(flaws{followsForever: true}))},
		{"resends a write that timed out", "RS-207", flawed(flaws{sendsAgain: true})},
		{"ignores the context", "RS-208", flawed(flaws{waitsRegardless: true})},
		{"fails a pipeline for one node", "RS-209", flawed(flaws{failsTogether: true})},
		{"keeps the slot map for ever", "RS-210", quick(flawed(flaws{staleForever: true}))},
		{"swallows MOVED under a set", "RS-211", flawed(flaws{swallowsMoved: true})},
		{"takes NOSCRIPT for nil", "RS-212", with(func(b replset.Backend) replset.Backend {
			return eachReply(b, func(_ []string, v any) any {
				if err, failed := v.(error); failed && strings.Contains(err.Error(), "NOSCRIPT") {
					return nil
				}
				return v
			})
		})},
	}
}

// The backend that the live defects are made of passes without one.
func TestReferenceBackend(t *testing.T) {
	if os.Getenv("SHARDKIT_LONG") != "1" {
		t.Skip("SHARDKIT_LONG=1 runs it: it takes half a minute")
	}
	Run(t, rawTarget(defectCluster(t), flaws{}))
}
