package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are drawn below the range from which systems take the ports of outgoing connections (32768 and up on Linux), so that a client's
// connection never sits on the port of a server that is dead for the moment. Bus ports are 10000 higher, as every
// server expects without being told, and still below that range.
const (
	firstPort = 10_000
	lastPort  = 22_000
	busOffset = 10_000
)

// freePorts returns n ports that are free now, together with their bus ports. They may be taken again before a server listens
// there: the start is then tried again.
func freePorts(n int) ([]int, error) {
	if most := (lastPort - firstPort) / 2; n > most {
		return nil, fmt.Errorf("harness: %d servers asked for, want at most %d", n, most)
	}
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	hold := func(port int) bool {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			held = append(held, l)
		}
		return err == nil
	}
	ports := make([]int, 0, n)
	for tries := 0; len(ports) < n; tries++ {
		if tries == 1000+10*n {
			return nil, fmt.Errorf("harness: found only %d of %d free ports from %d to %d on 127.0.0.1: end some servers", len(ports), n, firstPort, lastPort)
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		if hold(port) && hold(port+busOffset) {
			ports = append(ports, port)
		}
	}
	return ports, nil
}
