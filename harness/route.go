package harness

import (
	"errors"
	"time"
)

// A Route is a way to a node of its own: clients that take it can be cut off, stalled and slowed while others reach the
// node. Its faults are those of the node's own network, and concern nobody else. Its methods may be called concurrently.
type Route struct{ way network }

// Route opens another way to the node, which lasts until the group is closed. The name is for the timeline. Options.Proxied
// need not be set. It is ErrUnsupported for servers named by address.
func (n *Node) Route(name string) (*Route, error) {
	if n.server == nil {
		return nil, n.unsupported("open a route")
	}
	p, err := n.newRoute()
	for attempt := 1; errors.Is(err, ErrAddrInUse) && attempt < startAttempts; attempt++ {
		p, err = n.newRoute()
	}
	if err != nil {
		return nil, err
	}
	if !n.routes.add(p) {
		p.close()
		return nil, n.errorf("open a route: the servers are closed")
	}
	return &Route{network{n, n.name + " by " + name, p}}, nil
}

func (n *Node) newRoute() (*proxy, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	return newProxy(localhost(ports[0]), n.direct, n.tls != nil)
}

// Node returns where the route leads.
func (r *Route) Node() *Node { return r.way.node }

// Addr returns the host:port where clients find the route. It stays the same across restarts of the node.
func (r *Route) Addr() string { return r.way.proxy.addr }

// Cut is as for a Node.
func (r *Route) Cut() error { return r.way.cut() }

// Stall is as for a Node.
func (r *Route) Stall() error { return r.way.stall() }

// Slow is as for a Node.
func (r *Route) Slow(d time.Duration) error { return r.way.slow(d) }

// Swallow is as for a Node.
func (r *Route) Swallow(match func(message []byte) bool) error { return r.way.swallow(match) }

// Mend undoes the route's faults.
func (r *Route) Mend() error { return r.way.mend() }
