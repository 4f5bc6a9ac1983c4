package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

// addresses returns the servers named by the options or, where they can honour the options, by the environment, and
// which of the two it was; otherwise nil.
func (o Options) addresses(env string) (addrs []string, from string) {
	if o.Addrs != nil {
		return o.Addrs, "Options.Addrs"
	}
	for _, a := range strings.Split(os.Getenv(env), ",") {
		if a = strings.TrimSpace(a); a != "" {
			addrs = append(addrs, a)
		}
	}
	switch {
	case len(addrs) == 0 || o.Private:
		return nil, ""
	case o.needsOwn():
		o.Log("harness: %s is passed over: servers that run already cannot honour %s", env, ownOnly)
		return nil, ""
	}
	return addrs, env
}

// tooFew decides what becomes of servers that are fewer than asked for: those of the environment are passed over, those
// that the caller named himself are an error.
func (o Options) tooFew(from, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if o.Addrs != nil {
		return fmt.Errorf("harness: %w: %s", ErrUnsupported, what)
	}
	o.Log("harness: %s is passed over: %s", from, what)
	return nil
}

// attachShards returns nil, nil if the addresses are passed over.
func attachShards(ctx context.Context, o Options, addrs []string, from string) (*Shards, error) {
	count := cmp.Or(o.Shards, len(addrs))
	if count > len(addrs) {
		return nil, o.tooFew(from, "%d shards asked for, %d named", count, len(addrs))
	}
	addrs = addrs[:count]
	g := &Group{timeline: newTimeline(o.Log)}
	for i, a := range addrs {
		g.attach(o, fmt.Sprintf("shard-%d", i+1), a, "")
	}
	if err := g.attached(ctx, addrs); err != nil {
		return nil, fmt.Errorf("%w (named by %s)", err, from)
	}
	return &Shards{g}, nil
}

// attachCluster returns nil, nil if the addresses are passed over.
func attachCluster(ctx context.Context, o Options, addrs []string, from string) (*Cluster, error) {
	members, err := askCluster(ctx, o, addrs)
	if err != nil {
		return nil, fmt.Errorf("%w (named by %s)", err, from)
	}
	masters, replicas := 0, map[string]int{}
	for _, m := range members {
		if len(m.slots) > 0 {
			masters++
		}
		replicas[m.master]++
	}
	if masters < o.Masters {
		return nil, o.tooFew(from, "%d masters asked for, the cluster has %d", o.Masters, masters)
	}
	g := &Group{timeline: newTimeline(o.Log)}
	for i, m := range members {
		if len(m.slots) > 0 && replicas[m.id] < o.Replicas {
			return nil, o.tooFew(from, "%d replicas per master asked for, %s has %d", o.Replicas, m.addr, replicas[m.id])
		}
		g.attach(o, fmt.Sprintf("node-%d", i+1), m.addr, m.id)
	}
	if err := g.attached(ctx, addrs); err != nil {
		return nil, fmt.Errorf("%w (of the cluster named by %s)", err, from)
	}
	c := &Cluster{g}
	if err := c.waitReady(ctx); err != nil {
		return nil, fmt.Errorf("%w (named by %s)", err, from)
	}
	return c, nil
}

// askCluster returns the members of the cluster that take part in it, masters in the order of their slots, as seen by the
// first of the addresses that answers.
func askCluster(ctx context.Context, o Options, addrs []string) ([]member, error) {
	var errs []error
	for _, addr := range addrs {
		g := &Group{}
		v, err := g.attach(o, "seed", addr, "").view(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		members := slices.DeleteFunc(v.members, func(m member) bool {
			return m.is("fail") || m.is("noaddr") || m.is("handshake")
		})
		slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(firstSlot(a), firstSlot(b)) })
		for i, m := range members {
			if strings.HasPrefix(m.addr, ":") { // a node that has met no other does not know its own host
				host, _, _ := net.SplitHostPort(addr)
				members[i].addr = net.JoinHostPort(host, m.addr[1:])
			}
		}
		return members, nil
	}
	return nil, errors.Join(errs...)
}

// firstSlot puts masters in the order of their slots and the rest behind them.
func firstSlot(m member) int {
	if len(m.slots) == 0 {
		return Slots
	}
	return m.slots[0][0]
}

func (g *Group) attach(o Options, name, addr, id string) *Node {
	n := &Node{name: name, addr: addr, direct: addr, id: id, password: o.Password, timeline: g.timeline}
	g.nodes = append(g.nodes, n)
	return n
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
