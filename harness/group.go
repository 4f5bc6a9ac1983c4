package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"
)

// A Group is what clusters and shards have in common: nodes, where they came from, what was done to them. Its methods may be
// called concurrently.
type Group struct {
	nodes    []*Node
	provider string
	version  Version
	timeline *Timeline
	launcher Launcher // nil with servers that run elsewhere

	once     sync.Once
	closeErr error
}

// Nodes returns all nodes, in the order of their names. In a new cluster the masters come first.
func (g *Group) Nodes() []*Node { return append([]*Node(nil), g.nodes...) }

// Node returns the node of that name, or nil.
func (g *Group) Node(name string) *Node {
	for _, n := range g.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

// Addrs returns the host:port of every node, in the order of Nodes.
func (g *Group) Addrs() []string {
	addrs := make([]string, len(g.nodes))
	for i, n := range g.nodes {
		addrs[i] = n.addr
	}
	return addrs
}

// Provider says where the servers came from, such as "process: redis-server 7.0.15 (/usr/bin/redis-server)" or
// "address: valkey 8.1.1 (127.0.0.1:7000)".
func (g *Group) Provider() string { return g.provider }

// Version says what the servers are, as the first of them reported when the group was started.
func (g *Group) Version() Version { return g.version }

// Timeline returns the list of what was done to the servers.
func (g *Group) Timeline() *Timeline { return g.timeline }

// Close ends every server and deletes its folder; servers named by address are left alone. It may be called more than
// once, and returns the same each time.
func (g *Group) Close() error {
	g.once.Do(func() {
		if g.launcher == nil {
			g.timeline.mute()
			return
		}
		start := time.Now()
		for _, n := range g.nodes {
			if err := n.server.Exited(); err != nil && State(n.fault.Load()) != Dead {
				g.timeline.Note(n.name, "had ended by itself: "+err.Error())
			}
		}
		g.closeErr = g.launcher.Close()
		g.timeline.since(start, "", "close")
		g.timeline.mute()
	})
	return g.closeErr
}

// startAttempts bounds how often a start is tried again because another program took one of its ports in between.
const startAttempts = 5

// startGroup starts servers from the first provider that has some. plan makes the specs, one for each pair of ports, and the
// ids that go with them; wait returns when the group is ready.
func startGroup(ctx context.Context, o Options, count int, plan func(ports []int) ([]Spec, []string), wait func(context.Context, *Group) error) (*Group, error) {
	var none []error
	for _, p := range o.Providers {
		for attempt := 1; ; attempt++ {
			g, err := launchGroup(ctx, o, p, count, plan, wait)
			switch {
			case err == nil:
				return g, nil
			case errors.Is(err, ErrAddrInUse) && attempt < startAttempts && ctx.Err() == nil:
				o.Log("harness: a port was taken, starting again on others: %v", err)
				continue
			case !errors.Is(err, ErrNoServer):
				return nil, err
			}
			none = append(none, err)
			break
		}
	}
	return nil, errors.Join(none...)
}

func launchGroup(ctx context.Context, o Options, p Provider, count int, plan func(ports []int) ([]Spec, []string), wait func(context.Context, *Group) error) (_ *Group, err error) {
	launcher, err := p.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	g := &Group{timeline: newTimeline(o.Log), launcher: launcher}
	defer func() {
		if err != nil {
			launcher.Close()
		}
	}()
	ports, err := freePorts(count)
	if err != nil {
		return nil, err
	}
	specs, ids := plan(ports)
	servers, err := launcher.Launch(ctx, specs)
	if err != nil {
		return nil, err
	}
	for i, s := range servers {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i]))
		g.nodes = append(g.nodes, &Node{
			name: specs[i].Name, addr: addr, direct: addr, id: ids[i],
			password: o.Password, persist: o.Persist, timeline: g.timeline, server: s,
		})
	}
	for _, n := range g.nodes {
		if err := n.waitAnswer(ctx); err != nil {
			return nil, err
		}
	}
	if g.version, err = g.nodes[0].Version(ctx); err != nil {
		return nil, err
	}
	g.provider = launcher.Describe(g.version)
	if err := wait(ctx, g); err != nil {
		return nil, err
	}
	g.timeline.since(g.timeline.start, "", fmt.Sprintf("ready: %d nodes, %s", count, g.provider))
	return g, nil
}

// commonFlags are those of every server.
func commonFlags(o Options, port int) []string {
	flags := []string{
		"--port", strconv.Itoa(port),
		"--protected-mode", "no",
		"--daemonize", "no",
		"--save", "",
		"--appendonly", "no",
		// With the default delay a replica has no data to fail over with for its first 5 s.
		"--repl-diskless-sync-delay", "0",
	}
	if o.Persist {
		flags = append(flags, "--appendonly", "yes")
	}
	if o.Password != "" {
		flags = append(flags, "--requirepass", o.Password, "--masterauth", o.Password)
	}
	return flags
}
