package harness

import (
	"fmt"
	"time"
)

// Network faults concern the way between a node and its clients; with Options.Proxied each node has a proxy of its own there.
// A replica comes to its master by the same way, and so is a client; the nodes' gossip is not. The harness's own commands
// take another way. Without Options.Proxied these methods return ErrUnsupported.

// Cut resets all connections of clients to the node and refuses new ones until Mend.
func (n *Node) Cut() error { return n.network().cut() }

// Stall keeps all connections to the node, accepts new ones, and lets nothing through in either direction until Mend, which lets go on
// what was held back: a network that loses every packet for a while, seen from above TCP.
func (n *Node) Stall() error { return n.network().stall() }

// Slow delays everything by d in each direction, so that a round trip takes 2d longer, from now on and until Mend or another
// Slow. It does not limit the throughput.
func (n *Node) Slow(d time.Duration) error { return n.network().slow(d) }

// Swallow makes messages of the server to its clients vanish: those for which match returns true, until Mend. A message is a whole
// reply or push as it is on the wire, in RESP2 or RESP3, such as an invalidation or what a subscription was sent. A
// client whose reply vanishes takes the next one for it, so this is for what nobody waits for.
//
// match is called concurrently and may keep the message. With Options.TLS nobody but the client can read the messages, and Swallow
// returns ErrUnsupported.
func (n *Node) Swallow(match func(message []byte) bool) error { return n.network().swallow(match) }

// Mend undoes Cut, Stall, Slow and Swallow.
func (n *Node) Mend() error { return n.network().mend() }

// A network is one way to a node, and what can be done to it.
type network struct {
	node  *Node
	name  string // for the timeline
	proxy *proxy // nil without Options.Proxied
}

func (n *Node) network() network { return network{n, n.name, n.proxy} }

func (w network) cut() error {
	return w.do("cut the network", func() error { w.proxy.cut(); return nil })
}

func (w network) stall() error {
	return w.do("stall the network", func() error { w.proxy.stall(); return nil })
}

func (w network) slow(d time.Duration) error {
	if d < 0 {
		return w.node.errorf("slow the network by %v: want 0 or more", d)
	}
	return w.do(fmt.Sprintf("slow the network by %v", d), func() error { w.proxy.delay.Store(int64(d)); return nil })
}

func (w network) swallow(match func(message []byte) bool) error {
	if match == nil {
		return w.node.errorf("swallow messages: match is nil: use Mend to end it")
	}
	if w.node.tls != nil {
		return w.node.errorf("swallow messages: %w: with Options.TLS they cannot be told apart", ErrUnsupported)
	}
	return w.do("swallow messages", func() error { w.proxy.swallow.Store(&match); return nil })
}

func (w network) mend() error {
	return w.do("mend the network", func() error { return w.proxy.mend() })
}

func (w network) do(what string, fault func() error) error {
	w.node.mu.Lock()
	defer w.node.mu.Unlock()
	if w.proxy == nil {
		return w.node.errorf("%s: %w: it has no proxy: set Options.Proxied", what, ErrUnsupported)
	}
	start := time.Now()
	if err := fault(); err != nil {
		return w.node.errorf("%s: %w", what, err)
	}
	w.node.timeline.since(start, w.name, what)
	return nil
}
