package harness

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Slots is the number of slots of a Redis Cluster.
const Slots = 16384

// A Cluster is a Redis Cluster whose nodes are named "node-1", "node-2" and so on: in a new cluster first the masters, in the
// order of their slots, then the first replica of each master, then the second ones.
type Cluster struct {
	*Group
}

// StartCluster starts a cluster, or takes the one named by address, and returns when it is ready as WaitReady has it: about 2 s
// later, which is the servers' own floor. It gives up when ctx ends, or after 30 s if ctx has no deadline; then
// nothing is left behind.
//
// The error is ErrNoServer if there is nothing to start. If a server fails it holds the end of that server's log.
func StartCluster(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := withTimeoutUnlessSet(ctx, startTimeout)
	defer cancel()
	if addrs, from := o.addresses("SHARDKIT_CLUSTER"); addrs != nil {
		if c, err := attachCluster(ctx, o, addrs, from); c != nil || err != nil {
			return c, err
		}
	}
	masters := cmp.Or(o.Masters, defaultNodes)
	c := &Cluster{}
	p := plan{
		count: masters * (1 + o.Replicas),
		specs: func(ctx context.Context, l Launcher, endpoints []endpoint, shared common) ([]Spec, []string, error) {
			v, err := l.Version(ctx)
			if err != nil {
				return nil, nil, err
			}
			specs, ids := planCluster(o, v, masters, endpoints, shared)
			return specs, ids, nil
		},
		wait: func(ctx context.Context, g *Group) error {
			c.Group = g
			return c.waitReady(ctx)
		},
	}
	if _, err := p.start(ctx, o); err != nil {
		return nil, err
	}
	return c, nil
}

// planCluster writes each node's nodes.conf beforehand. Nodes that know each other from the start are ready in 2.0 to 2.2 s;
// CLUSTER MEET and redis-cli --cluster create have tails to 8 s.
func planCluster(o Options, v Version, masters int, endpoints []endpoint, shared common) ([]Spec, []string) {
	ids := make([]string, len(endpoints))
	lines := make([]string, len(endpoints))
	for i, e := range endpoints {
		id := make([]byte, 20)
		rand.Read(id)
		ids[i] = hex.EncodeToString(id)
		m := i % masters
		role, master, slots := "master", "-", ""
		if i < masters {
			slots = fmt.Sprintf(" %d-%d", m*Slots/masters, (m+1)*Slots/masters-1)
		} else {
			role, master = "slave", ids[m]
		}
		// The epoch is distinct per master; a replica carries its master's.
		shard := ""
		if knowsShardIDs(v) {
			shard = ",,shard-id=" + ids[m]
		}
		lines[i] = fmt.Sprintf("%s 127.0.0.1:%d@%d%s %%s%s %s 0 0 %d connected%s\n",
			ids[i], e.public, e.port+busOffset, shard, role, master, m+1, slots)
	}
	timeout := cmp.Or(o.NodeTimeout, defaultNodeTimeout)
	specs := make([]Spec, len(endpoints))
	for i, e := range endpoints {
		var conf strings.Builder
		for j, line := range lines {
			myself := ""
			if i == j {
				myself = "myself,"
			}
			fmt.Fprintf(&conf, line, myself)
		}
		fmt.Fprintf(&conf, "vars currentEpoch %d lastVoteEpoch 0\n", masters)
		flags := append(shared.flags(e.port),
			"--cluster-enabled", "yes",
			"--cluster-config-file", "nodes.conf",
			"--cluster-node-timeout", strconv.FormatInt(timeout.Milliseconds(), 10),
		)
		if e.public != e.port {
			announced := "--cluster-announce-port"
			if o.TLS {
				announced = "--cluster-announce-tls-port"
			}
			flags = append(flags,
				announced, strconv.Itoa(e.public),
				"--cluster-announce-bus-port", strconv.Itoa(e.port+busOffset))
		}
		specs[i] = Spec{
			Name:    fmt.Sprintf("node-%d", i+1),
			Port:    e.port,
			BusPort: e.port + busOffset,
			Flags:   append(flags, o.Args...),
			Files:   shared.files("nodes.conf", conf.String()),
		}
	}
	return specs, ids
}

// knowsShardIDs reports whether nodes.conf takes a shard's id. A server that knows them and is given none makes one up for itself, and
// then is missing from its own CLUSTER SHARDS; an older one takes it for a host's name.
func knowsShardIDs(v Version) bool { return v.Name != "redis" || v.AtLeast(7, 2) }

// Owner returns the master that owns the slot: where nodes differ, the one with the latest claim, to which the others will
// come round.
func (c *Cluster) Owner(ctx context.Context, slot int) (*Node, error) {
	if slot < 0 || slot >= Slots {
		return nil, fmt.Errorf("harness: slot %d: want 0 to %d", slot, Slots-1)
	}
	t, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	n := c.byID(t[slot])
	if n == nil {
		return nil, fmt.Errorf("harness: slot %d has no owner among the nodes", slot)
	}
	return n, nil
}

// Masters returns the nodes that own slots now, in the order of their first slots.
func (c *Cluster) Masters(ctx context.Context) ([]*Node, error) {
	t, err := c.table(ctx)
	if err != nil {
		return nil, err
	}
	var masters []*Node
	seen := map[string]bool{"": true}
	for _, id := range t {
		if !seen[id] {
			seen[id] = true
			if n := c.byID(id); n != nil {
				masters = append(masters, n)
			}
		}
	}
	return masters, nil
}

// Replicas returns the nodes that say of themselves that they replicate the master now.
func (c *Cluster) Replicas(ctx context.Context, master *Node) ([]*Node, error) {
	var replicas []*Node
	views, err := c.views(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range views {
		if me := v.myself(); me.master == master.id {
			replicas = append(replicas, v.node)
		}
	}
	return replicas, nil
}

func (c *Cluster) byID(id string) *Node {
	for _, n := range c.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}
