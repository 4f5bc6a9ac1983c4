package harness

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
)

// addresses returns the servers named by the options or, where they can honour the options, by the environment; otherwise
// nil.
func (o Options) addresses(env string) []string {
	if o.Addrs != nil {
		return o.Addrs
	}
	var addrs []string
	for _, a := range strings.Split(os.Getenv(env), ",") {
		if a = strings.TrimSpace(a); a != "" {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 || o.Private {
		return nil
	}
	if o.Server != "" || len(o.Args) > 0 || o.Persist || o.NodeTimeout != 0 {
		o.Log("harness: %s is passed over: servers that run already cannot honour Server, Args, Persist or NodeTimeout", env)
		return nil
	}
	return addrs
}

// tooSmall decides what becomes of servers that are fewer than asked for: those of the environment are passed over, those
// that the caller named himself are an error.
func (o Options) tooSmall(what string) error {
	if o.Addrs != nil {
		return fmt.Errorf("harness: %w: Options.Addrs: %s", ErrUnsupported, what)
	}
	o.Log("harness: the servers named by the environment are passed over: %s", what)
	return nil
}

// attachShards returns nil, nil if the addresses are passed over.
func attachShards(ctx context.Context, o Options, addrs []string) (*Group, error) {
	count := or(o.Shards, len(addrs))
	if count > len(addrs) {
		return nil, o.tooSmall(fmt.Sprintf("%d shards asked for, %d named", count, len(addrs)))
	}
	addrs = addrs[:count]
	g := &Group{timeline: newTimeline(o.Log)}
	for i, a := range addrs {
		g.nodes = append(g.nodes, g.attach(o, fmt.Sprintf("shard-%d", i+1), a, ""))
	}
	if err := g.attached(ctx, addrs); err != nil {
		return nil, err
	}
	return g, nil
}

// attachCluster returns nil, nil if the addresses are passed over.
func attachCluster(ctx context.Context, o Options, addrs []string) (*Cluster, error) {
	g := &Group{timeline: newTimeline(o.Log)}
	var seed *view
	var err error
	for _, a := range addrs { // any one that answers will do
		if seed, err = g.attach(o, "seed", a, "").view(ctx); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	known := slices.DeleteFunc(seed.members, func(m member) bool {
		return m.is("fail") || m.is("noaddr") || m.is("handshake")
	})
	slices.SortStableFunc(known, func(a, b member) int { return cmp.Compare(firstSlot(a), firstSlot(b)) })
	masters, replicas := 0, map[string]int{}
	for _, m := range known {
		if len(m.slots) > 0 {
			masters++
		}
		replicas[m.master]++
	}
	if masters < o.Masters {
		return nil, o.tooSmall(fmt.Sprintf("%d masters asked for, the cluster at %s has %d", o.Masters, addrs[0], masters))
	}
	for i, m := range known {
		if len(m.slots) > 0 && replicas[m.id] < o.Replicas {
			return nil, o.tooSmall(fmt.Sprintf("%d replicas per master asked for, %s has %d", o.Replicas, m.addr, replicas[m.id]))
		}
		g.nodes = append(g.nodes, g.attach(o, fmt.Sprintf("node-%d", i+1), m.addr, m.id))
	}
	if err := g.attached(ctx, addrs); err != nil {
		return nil, err
	}
	c := &Cluster{g}
	return c, c.waitReady(ctx)
}

// firstSlot puts masters in the order of their slots and the rest behind them.
func firstSlot(m member) int {
	if len(m.slots) == 0 {
		return Slots
	}
	return m.slots[0][0]
}

func (g *Group) attach(o Options, name, addr, id string) *Node {
	return &Node{name: name, addr: addr, direct: addr, id: id, password: o.Password, timeline: g.timeline}
}

func (g *Group) attached(ctx context.Context, addrs []string) (err error) {
	for _, n := range g.nodes {
		if _, err := n.Do(ctx, "PING"); err != nil {
			return err
		}
	}
	if g.version, err = g.nodes[0].Version(ctx); err != nil {
		return err
	}
	g.provider = fmt.Sprintf("address: %v (%s)", g.version, strings.Join(addrs, ","))
	g.timeline.since(g.timeline.start, "", "attached to "+g.provider)
	return nil
}
