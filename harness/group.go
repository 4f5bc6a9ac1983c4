package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
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
	tls      *tls.Config
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

// TLS returns what a client needs to reach servers that were started with Options.TLS, or nil for others. It is a copy, for
// the caller to change.
func (g *Group) TLS() *tls.Config { return g.tls.Clone() }

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
		g.closeErr = g.end()
		g.timeline.since(start, "", "close")
		g.timeline.mute()
	})
	return g.closeErr
}

// startAttempts bounds how often a start is tried again because another program took one of its ports in between.
const startAttempts = 5

// An endpoint is where a server is to listen, and where its clients are to find it: the same unless there is a proxy.
type endpoint struct{ port, public int }

// A plan is a group to be started: how many servers, what they are given their endpoints, and when the group is ready.
type plan struct {
	count int
	specs func(context.Context, Launcher, []endpoint, common) (specs []Spec, ids []string, err error)
	wait  func(context.Context, *Group) error
}

// start starts servers from the first provider that has some.
func (p plan) start(ctx context.Context, o Options) (*Group, error) {
	var none []error
	for _, provider := range o.Providers {
		for attempt := 1; ; attempt++ {
			g, err := p.try(ctx, o, provider)
			if err == nil {
				return g, nil
			}
			if errors.Is(err, ErrNoServer) {
				none = append(none, err)
				break
			}
			if !errors.Is(err, ErrAddrInUse) || attempt == startAttempts || ctx.Err() != nil {
				return nil, err
			}
			o.Log("harness: a port was taken, starting again on others: %v", err)
		}
	}
	return nil, errors.Join(none...)
}

func (p plan) try(ctx context.Context, o Options, provider Provider) (_ *Group, err error) {
	launcher, err := provider.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	g := &Group{timeline: newTimeline(o.Log), launcher: launcher}
	defer func() {
		if err != nil {
			g.end()
		}
	}()
	shared := common{o: o}
	if o.TLS {
		if shared.cert, err = newCertificate(); err != nil {
			return nil, err
		}
		g.tls = shared.cert.client
	}
	endpoints, err := freeEndpoints(p.count, o.Proxied)
	if err != nil {
		return nil, err
	}
	specs, ids, err := p.specs(ctx, launcher, endpoints, shared)
	if err != nil {
		return nil, err
	}
	for i, e := range endpoints {
		n := &Node{
			name: specs[i].Name, addr: localhost(e.public), direct: localhost(e.port), id: ids[i],
			password: o.Password, tls: g.tls, persist: o.Persist, timeline: g.timeline,
		}
		if o.Proxied { // before the servers, as replicas look for their masters at once
			if n.proxy, err = newProxy(n.addr, n.direct, o.TLS); err != nil {
				return nil, err
			}
		}
		g.nodes = append(g.nodes, n)
	}
	servers, err := launcher.Launch(ctx, specs)
	if err != nil {
		return nil, err
	}
	for i, n := range g.nodes {
		n.server = servers[i]
	}
	for _, n := range g.nodes {
		if err := n.waitAnswer(ctx); err != nil {
			if o.TLS && builtWithoutTLS(n.LogTail(logLines)) {
				err = fmt.Errorf("harness: Options.TLS: %w: the server was built without TLS: %w", ErrUnsupported, err)
			}
			return nil, err
		}
	}
	if g.version, err = g.nodes[0].Version(ctx); err != nil {
		return nil, err
	}
	g.provider = launcher.Describe(g.version)
	if err := p.wait(ctx, g); err != nil {
		return nil, err
	}
	g.timeline.since(g.timeline.start, "", fmt.Sprintf("ready: %d nodes, %s", p.count, g.provider))
	return g, nil
}

// end ends servers and proxies.
func (g *Group) end() error {
	for _, n := range g.nodes {
		if n.proxy != nil {
			n.proxy.close()
		}
		n.routes.close()
	}
	return g.launcher.Close()
}

func freeEndpoints(n int, proxied bool) ([]endpoint, error) {
	want := n
	if proxied {
		want = 2 * n
	}
	ports, err := freePorts(want)
	if err != nil {
		return nil, err
	}
	endpoints := make([]endpoint, n)
	for i := range endpoints {
		endpoints[i] = endpoint{ports[i], ports[want-n+i]}
	}
	return endpoints, nil
}

func localhost(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// common is what all servers of a group are given.
type common struct {
	o    Options
	cert *certificate // nil without TLS
}

func (c common) flags(port int) []string {
	flags := append(listenFlags(c.cert, strconv.Itoa(port)),
		"--protected-mode", "no",
		"--daemonize", "no",
		"--save", "",
		"--appendonly", "no",
		// With the default delay a replica has no data to fail over with for its first 5 s.
		"--repl-diskless-sync-delay", "0",
	)
	if c.o.Persist {
		flags = append(flags, "--appendonly", "yes")
	}
	if c.o.Password != "" {
		flags = append(flags, "--requirepass", c.o.Password, "--masterauth", c.o.Password)
	}
	if len(c.o.Users) > 0 {
		flags = append(flags, "--aclfile", usersFile)
	}
	return flags
}

// files returns the files that all servers have, and one server's own, as name and content in turn.
func (c common) files(own ...string) map[string]string {
	files := map[string]string{}
	if c.cert != nil {
		maps.Copy(files, c.cert.files)
	}
	if len(c.o.Users) > 0 {
		files[usersFile] = usersText(c.o.Users, c.o.Password)
	}
	for i := 0; i < len(own); i += 2 {
		files[own[i]] = own[i+1]
	}
	return files
}
