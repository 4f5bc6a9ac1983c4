package harness

import (
	"fmt"
	"time"
)

// Network faults concern the way between a node and its clients; with Options.Proxied each node has a proxy of its own there.
// A replica comes to its master by the same way, and so is a client; the nodes' gossip is not. The harness's own commands
// take another way. Without Options.Proxied these methods return ErrUnsupported.

// Cut resets all connections of clients to the node and refuses new ones until Mend.
func (n *Node) Cut() error {
	return n.doNetwork("cut the network", func(p *proxy) error { p.cut(); return nil })
}

// Stall keeps all connections to the node, accepts new ones, and lets nothing through in either direction until Mend, which lets go on
// what was held back: a network that loses every packet for a while, seen from above TCP.
func (n *Node) Stall() error {
	return n.doNetwork("stall the network", func(p *proxy) error { p.stall(); return nil })
}

// Slow delays everything by d in each direction, so that a round trip takes 2d longer, from now on and until Mend or another
// Slow. It does not limit the throughput.
func (n *Node) Slow(d time.Duration) error {
	if d < 0 {
		return n.errorf("slow the network by %v: want 0 or more", d)
	}
	return n.doNetwork(fmt.Sprintf("slow the network by %v", d), func(p *proxy) error { p.delay.Store(int64(d)); return nil })
}

// Swallow makes messages of the server to its clients vanish: those for which match returns true, until Mend. A message is a whole
// reply or push as it is on the wire, in RESP2 or RESP3, such as an invalidation or what a subscription was sent. A
// client whose reply vanishes takes the next one for it, so this is for what nobody waits for.
//
// match is called concurrently and may keep the message. With Options.TLS nobody but the client can read the messages, and Swallow
// returns ErrUnsupported.
func (n *Node) Swallow(match func(message []byte) bool) error {
	if match == nil {
		return n.errorf("swallow messages: match is nil: use Mend to end it")
	}
	if n.tls != nil {
		return n.errorf("swallow messages: %w: with Options.TLS they cannot be told apart", ErrUnsupported)
	}
	return n.doNetwork("swallow messages", func(p *proxy) error { p.swallow.Store(&match); return nil })
}

// Mend undoes Cut, Stall, Slow and Swallow.
func (n *Node) Mend() error {
	return n.doNetwork("mend the network", (*proxy).mend)
}

func (n *Node) doNetwork(what string, fault func(*proxy) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proxy == nil {
		return n.errorf("%s: %w: it has no proxy: set Options.Proxied", what, ErrUnsupported)
	}
	start := time.Now()
	if err := fault(n.proxy); err != nil {
		return n.errorf("%s: %w", what, err)
	}
	n.timeline.since(start, n.name, what)
	return nil
}
