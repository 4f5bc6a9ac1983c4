package rueidisbackend

import (
	"net"
	"strconv"
	"strings"
)

// maxRedirects is how many redirects one command follows. A move and a failover
// at once take three; rueidis's own limit, which is none by default, would
// follow two nodes that name each other until ctx ends.
const maxRedirects = 5

// target is a node to send to, whether it must be told ASKING first, and a slot
// that took us there.
type target struct {
	addr string
	ask  bool
	slot uint16
}

// redirectOf reads MOVED and ASK: "MOVED 42 127.0.0.1:7000". The answer came
// from the given node.
func redirectOf(from target, reply any) (target, bool) {
	err, ok := reply.(*serverError)
	if !ok {
		return target{}, false
	}
	words := strings.Fields(err.text)
	if len(words) < 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return target{}, false
	}
	slot, notNumber := strconv.ParseUint(words[1], 10, 16)
	colon := strings.LastIndexByte(words[2], ':')
	if notNumber != nil || slot >= slotCount || colon < 0 {
		return target{}, false
	}
	host := strings.Trim(words[2][:colon], "[]") // an IPv6 address comes without brackets
	addr := nodeAddr(from.addr, host, words[2][colon+1:])
	return target{addr: addr, ask: words[0] == "ASK", slot: uint16(slot)}, addr != ""
}

// redirected is where a command of that slot is to be sent next: where MOVED or
// ASK says, or to the slot's new owner if nothing was sent because it has one.
func (b *Backend) redirected(from target, slot uint16, reply any) (target, bool) {
	if reply == errElsewhere {
		owner := b.slots.owner(slot)
		if owner == nil {
			return target{}, false
		}
		return target{addr: *owner, slot: slot}, true
	}
	to, ok := redirectOf(from, reply)
	if ok && !to.ask {
		b.slots.moved(to.slot, to.addr)
	}
	return to, ok
}

// nodeAddr is a node's address as rueidis writes it, which is how its clients
// are found in Nodes: no host means the host that was asked, "?" that the node
// has no name yet.
func nodeAddr(asked, host, port string) string {
	switch host {
	case "":
		host, _, _ = net.SplitHostPort(asked)
	case "?":
		return ""
	}
	return net.JoinHostPort(host, port)
}
