package rueidisbackend

import (
	"context"
	"strings"

	"github.com/redis/rueidis"
)

// asideAtOnce bounds the connections to hidden nodes. They come from rueidis's
// pool of connections for one user each, which keeps them.
const asideAtOnce = 4

// hidden returns a connection to a node that rueidis has but does not show. What
// InitAddress names stays connected though the cluster does not list it, and
// Nodes leaves it out. That happens to masters without slots before Redis 8, and
// to any master of a cluster that was brought from Redis 7.0 to Redis 8.0 or
// Valkey 8.1 in place: each node leaves itself out of CLUSTER SHARDS until it is
// restarted once more (redis/redis#14495).
//
// A dedicated client whose first command is bound to no slot gets a connection
// to a random node, hidden ones included. So it is asked who it is, and given
// back if it is another. It is nil if the node was not found.
func (b *Backend) hidden(ctx context.Context, addr, id string) (found rueidis.CommandClient, release func()) {
	select {
	case b.aside <- struct{}{}:
	case <-ctx.Done():
		return nil, nil
	}
	defer func() {
		if found == nil {
			b.ids.Delete(addr)
			<-b.aside
		}
	}()
	inner := context.WithoutCancel(ctx)
	for tries := 4 * (len(b.nodes.Load().clients) + 1); tries > 0 && ctx.Err() == nil; tries-- {
		client, giveBack := b.client.Dedicate()
		if got, _ := client.Do(inner, b.bare("CLUSTER", "MYID")).ToString(); got == id {
			b.ids.Store(addr, id)
			return client, func() { giveBack(); <-b.aside }
		}
		giveBack()
	}
	return nil, nil
}

// idOf asks nodes that are not hidden for the id of the one at addr. It is ""
// for one that is unknown or that has failed.
func (b *Backend) idOf(ctx context.Context, addr string) string {
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	for at := range b.nodes.Load().clients {
		results, err := b.call(ctx, target{addr: at}, []rueidis.Completed{b.bare("CLUSTER", "NODES")})
		if err != nil || results[0].Error() != nil {
			continue
		}
		m, _ := results[0].ToMessage()
		text, _ := plain(&m).(string)
		return parseNodes(at, text, addr)
	}
	return ""
}

// parseNodes finds the id of the node at addr in CLUSTER NODES, whose lines
// begin with "ID IP:PORT@BUSPORT,HOSTNAME,... FLAGS".
func parseNodes(asked, text, addr string) string {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 3 || strings.Contains(words[2], "fail") || strings.Contains(words[2], "noaddr") {
			continue
		}
		where := strings.Split(words[1], ",")
		endpoint, _, _ := strings.Cut(where[0], "@")
		colon := strings.LastIndexByte(endpoint, ':')
		if colon < 0 {
			continue
		}
		hosts := []string{strings.Trim(endpoint[:colon], "[]")}
		if len(where) > 1 && where[1] != "" {
			hosts = append(hosts, where[1])
		}
		for _, host := range hosts {
			if nodeAddr(asked, host, endpoint[colon+1:]) == addr {
				return words[0]
			}
		}
	}
	return ""
}
