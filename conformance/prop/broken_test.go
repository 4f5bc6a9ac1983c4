package prop

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/replset/memory"
	"github.com/shardkit/shardkit/ring"
	"github.com/shardkit/shardkit/slotmap"
)

// What is broken on purpose, and the property that must find it.
var broken = []struct {
	defect string
	found  string
	breaks func(*conformance.Target)
}{
	{"tags that are not the smallest", "PR-001", tags(func(slot uint16) string {
		if slot%64 == 42 {
			return bigger(slot)
		}
		return slotmap.Tag(slot)
	})},
	{"a tag of another slot", "PR-001", tags(func(slot uint16) string { return slotmap.Tag(slot ^ slot>>13&1) })},
	{"a tag with a leading zero", "PR-001", tags(func(slot uint16) string { return fmt.Sprintf("%02s", slotmap.Tag(slot)) })},
	{"an empty tag is hashed as nothing", "PR-002", slots(func(key string) string {
		if _, rest, ok := strings.Cut(key, "{}"); ok && !strings.Contains(key[:len(key)-len(rest)-2], "{") {
			return ""
		}
		return slotmap.HashTag(key)
	})},
	{"the last { begins the tag", "PR-002", slots(func(key string) string {
		if i := strings.LastIndexByte(key, '{'); i >= 0 {
			return slotmap.HashTag(key[i:])
		}
		return key
	})},
	{"the last } ends the tag", "PR-002", slots(func(key string) string {
		if i, j := strings.IndexByte(key, '{'), strings.LastIndexByte(key, '}'); i >= 0 && j > i+1 && key[i+1] != '}' {
			return key[i+1 : j]
		}
		return slotmap.HashTag(key)
	})},
	{"after an empty tag the next one counts", "PR-002", slots(func(key string) string {
		for key != "" {
			i := strings.IndexByte(key, '{')
			j := strings.IndexByte(key[i+1:], '}')
			if i < 0 || j < 0 {
				break
			}
			if j > 0 {
				return key[i+1:][:j]
			}
			key = key[i+2:]
		}
		return key
	})},

	{"modulo", "PR-101", rings(func(r *ring.Ring, p *brokenRing) {
		p.locate = func(key string) string { return r.Name(int(crc(key)) % r.Len()) }
	})},
	{"an exact table, which gives up some keys", "PR-101", func(t *conformance.Target) {
		t.Ring = conformance.ShardkitRing(&ring.Options{Placement: ring.Table{Buckets: 1 << 14, Exact: true}})
	}},
	{"a weight that goes the wrong way", "PR-102", nodes(func(_ int, n ring.Node) ring.Node { return ring.Node{Name: n.Name, Weight: 1 / n.Weight} })},
	{"a node that is favoured", "PR-103", nodes(func(_ int, n ring.Node) ring.Node {
		if crc(n.Name)%2 == 0 {
			n.Weight *= 16
		}
		return n
	})},
	{"weights are ignored", "PR-104", nodes(func(_ int, n ring.Node) ring.Node { return ring.Node{Name: n.Name, Weight: 1} })},
	{"who came first counts", "PR-105", nodes(func(i int, n ring.Node) ring.Node { return ring.Node{Name: n.Name, Weight: n.Weight * float64(1+i)} })},
	{"the order begins with another node", "PR-106", rings(func(r *ring.Ring, p *brokenRing) {
		p.locateN = func(key string, n int) []string {
			order := r.LocateN(key, n)
			slices.Reverse(order)
			return order
		}
	})},
	{"a node twice", "PR-106", rings(func(r *ring.Ring, p *brokenRing) {
		p.locateN = func(key string, n int) []string {
			order := r.LocateN(key, n)
			order[len(order)-1] = order[0]
			return order
		}
	})},
	{"more nodes, another order", "PR-106", rings(func(r *ring.Ring, p *brokenRing) {
		p.locateN = func(key string, n int) []string {
			order := r.LocateN(key, n)
			if len(order) > 3 {
				order[1], order[2] = order[2], order[1]
			}
			return order
		}
	})},
	{"a node that is down moves the keys of others", "PR-107", func(t *conformance.Target) {
		whole := t.Ring
		t.Ring = func(nodes []ring.Node, down ...string) (conformance.Placement, error) {
			for i := range nodes {
				nodes[i].Weight += float64(len(down))
			}
			nodes[0].Weight = 1
			return whole(nodes, down...)
		}
	}},
	{"a node that is down is still named", "PR-107", func(t *conformance.Target) {
		whole := t.Ring
		t.Ring = func(nodes []ring.Node, down ...string) (conformance.Placement, error) { return whole(nodes) }
	}},

	{"SREM removes nothing", "PR-201", backends(func(cmd []string) []string {
		if cmd[0] == "SREM" {
			return []string{"SCARD", cmd[1]}
		}
		return cmd
	})},
	{"DEL deletes nothing", "PR-201", backends(deletesNothing)},
	{"SADD leaves out its last member", "PR-201", backends(func(cmd []string) []string {
		if cmd[0] == "SADD" && len(cmd) > 20 {
			return cmd[:len(cmd)-1]
		}
		return cmd
	})},
	{"an empty member is lost", "PR-201", backends(func(cmd []string) []string {
		if cmd[0] == "SADD" && len(cmd) > 3 {
			return slices.DeleteFunc(slices.Clone(cmd), func(word string) bool { return word == "" })
		}
		return cmd
	})},
	{"members end at a zero byte", "PR-201", backends(func(cmd []string) []string {
		cmd = slices.Clone(cmd)
		for i := range cmd {
			cmd[i], _, _ = strings.Cut(cmd[i], "\x00")
		}
		return cmd
	})},
	{"numbers lose their leading zero", "PR-201", backends(func(cmd []string) []string {
		cmd = slices.Clone(cmd)
		for i, word := range cmd {
			if word == "042" {
				cmd[i] = "42"
			}
		}
		return cmd
	})},
	{"one slot's writes are lost, and acknowledged", "PR-201", func(t *conformance.Target) {
		t.Backend = func(context.Context, conformance.Connection) (replset.Backend, func(), error) {
			return forgetful{memory.New()}, nil, nil
		}
	}},
	{"SDIFF answers with the first set", "PR-201", backends(func(cmd []string) []string {
		if cmd[0] == "SDIFF" {
			return []string{"SMEMBERS", cmd[1]}
		}
		return cmd
	})},
	{"SINTER answers with the second set", "PR-201", backends(func(cmd []string) []string {
		if cmd[0] == "SINTER" && len(cmd) > 2 {
			return []string{"SMEMBERS", cmd[2]}
		}
		return cmd
	})},
}

// TestBrokenIsFound prints the table, and to $SHARDKIT_BROKEN if that names a file.
func TestBrokenIsFound(t *testing.T) {
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "DEFECT\tFOUND BY\tFIRST WORDS")
	for _, b := range broken {
		t.Run(strings.ReplaceAll(b.defect, " ", "-"), func(t *testing.T) {
			target := target(fixedSeed(t))
			b.breaks(&target)
			r := execute(t, target, b.found)[0]
			if r.Status != conformance.StatusFail || r.Reason != conformance.ReasonRequirement || !strings.Contains(r.Seen, "counterexample: ") ||
				!strings.Contains(r.Rerun, fmt.Sprint("SHARDKIT_SEED=", target.Seed)) {
				t.Errorf("%s of %s: got %s (%s), want a failure with a counterexample and how to run it again\nseen: %s\nagain: %s",
					b.found, b.defect, r.Status, r.Reason, r.Seen, r.Rerun)
			}
			line, _, _ := strings.Cut(r.Seen, "\n")
			fmt.Fprintf(w, "%s\t%s\t%.120s\n", b.defect, b.found, line)
			t.Log(r.Seen)
		})
	}
	w.Flush()
	t.Log("\n" + table.String())
	if file := os.Getenv("SHARDKIT_BROKEN"); file != "" {
		if err := os.WriteFile(file, table.Bytes(), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// What fails is shrunk: where nothing is deleted, a publish of one letter and one step more are left of whatever failed first.
func TestShrunk(t *testing.T) {
	target := target(fixedSeed(t))
	backends(deletesNothing)(&target)
	seen := execute(t, target, "PR-201")[0].Seen
	_, sequence, _ := strings.Cut(seen, "counterexample: ")
	sequence, _, _ = strings.Cut(sequence, "\n")
	_, sequence, _ = strings.Cut(sequence, "sequential=")
	if words := strings.Fields(sequence); len(words) < 3 || len(words) > 4 || words[0] != "[publish" && words[0] != "[restore" {
		t.Errorf("got the sequence %s, want two steps\n%s", sequence, seen)
	}
}

func deletesNothing(cmd []string) []string {
	if cmd[0] == "DEL" && !strings.HasSuffix(cmd[1], ":lease") { // for that a writer would wait
		return []string{"EXISTS", cmd[1]}
	}
	return cmd
}

// bigger is an integer that hashes to the slot, and not the smallest.
func bigger(slot uint16) string {
	for n := 1 << 17; ; n++ {
		if text := fmt.Sprint(n); slotmap.Slot(text) == slot {
			return text
		}
	}
}

func tags(tag func(slot uint16) string) func(*conformance.Target) {
	return func(t *conformance.Target) {
		t.Slots = &conformance.SlotFuncs{Slot: slotmap.Slot, Tag: tag, KeyFor: slotmap.KeyFor}
	}
}

// slots are slot functions that hash another part of the key.
func slots(hashed func(key string) string) func(*conformance.Target) {
	slot := func(key string) uint16 { return crc(hashed(key)) % slotmap.Slots }
	return func(t *conformance.Target) {
		t.Slots = &conformance.SlotFuncs{
			Slot: slot, Tag: slotmap.Tag,
			KeyFor: func(name, key string) string { return slotmap.KeyForSlot(name, slot(key)) },
		}
	}
}

type brokenRing struct {
	locate  func(key string) string
	locateN func(key string, n int) []string
}

func (r *brokenRing) Locate(key string) string           { return r.locate(key) }
func (r *brokenRing) LocateN(key string, n int) []string { return r.locateN(key, n) }

func rings(breaks func(*ring.Ring, *brokenRing)) func(*conformance.Target) {
	return func(t *conformance.Target) {
		t.Ring = func(nodes []ring.Node, down ...string) (conformance.Placement, error) {
			r, err := ring.New(nodes, &ring.Options{Placement: ring.Table{Buckets: 1 << 14}})
			if err == nil {
				r, err = r.WithDown(down...)
			}
			if err != nil {
				return nil, err
			}
			p := &brokenRing{r.Locate, r.LocateN}
			breaks(r, p)
			return p, nil
		}
	}
}

// nodes are rings of other nodes than those given.
func nodes(other func(i int, n ring.Node) ring.Node) func(*conformance.Target) {
	return func(t *conformance.Target) {
		whole := t.Ring
		t.Ring = func(nodes []ring.Node, down ...string) (conformance.Placement, error) {
			nodes = slices.Clone(nodes)
			for i := range nodes {
				nodes[i] = other(i, nodes[i])
			}
			return whole(nodes, down...)
		}
	}
}

// rewriting is a cluster that gets other commands than those sent.
type rewriting struct {
	replset.Backend
	rewrite func(cmd []string) []string
}

func backends(rewrite func(cmd []string) []string) func(*conformance.Target) {
	return func(t *conformance.Target) {
		t.Backend = func(context.Context, conformance.Connection) (replset.Backend, func(), error) {
			return rewriting{memory.New(), rewrite}, nil, nil
		}
	}
}

func (b rewriting) all(cmds [][]string) [][]string {
	rewritten := make([][]string, len(cmds))
	for i, cmd := range cmds {
		rewritten[i] = b.rewrite(cmd)
	}
	return rewritten
}

func (b rewriting) Do(ctx context.Context, key string, cmd []string) (any, error) {
	return b.Backend.Do(ctx, key, b.rewrite(cmd))
}

func (b rewriting) Pipeline(ctx context.Context, keys []string, cmds [][]string) []any {
	return b.Backend.Pipeline(ctx, keys, b.all(cmds))
}

func (b rewriting) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	return b.Backend.Tx(ctx, key, b.all(cmds))
}

// forgetful acknowledges what it is told to write in an eighth of the slots, and changes nothing there.
type forgetful struct{ replset.Backend }

func (b forgetful) Tx(ctx context.Context, key string, cmds [][]string) ([]any, error) {
	writes := slices.ContainsFunc(cmds, func(cmd []string) bool { return cmd[0] == "SADD" || cmd[0] == "SREM" })
	if !writes || slotmap.Slot(key)>>11 != 3 {
		return b.Backend.Tx(ctx, key, cmds)
	}
	replies := make([]any, len(cmds))
	for i := range replies {
		replies[i] = "OK"
	}
	return replies, nil
}
