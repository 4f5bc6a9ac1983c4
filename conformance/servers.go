package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// open sees to it that there are servers; once.
func (s *suite) open(ctx context.Context) error {
	if s.tried {
		return s.noneYet
	}
	s.tried = true
	s.noneYet = s.start(ctx)
	return s.noneYet
}

func (s *suite) start(ctx context.Context) (err error) {
	switch {
	case s.Serverless:
		s.servers.Provider = "in process"
		return nil
	case len(s.Addrs) > 0:
		return s.meet(ctx)
	case s.Target.Cluster != nil:
		s.cluster = s.Target.Cluster
	default:
		s.Log("starting a cluster")
		if s.cluster, err = harness.StartCluster(ctx, s.Target.Servers); err != nil {
			return err
		}
		s.own = true
	}
	masters, err := s.cluster.Masters(ctx)
	if err != nil {
		return err
	}
	v := s.cluster.Version()
	s.servers.Name, s.servers.Version, s.servers.Provider = v.Name, v.Number, s.cluster.Provider()
	s.servers.Masters, s.servers.Replicas = len(masters), len(s.cluster.Nodes())-len(masters)
	return nil
}

// meet looks at somebody else's cluster through the backend under test.
func (s *suite) meet(ctx context.Context) error {
	s.servers.Provider = "address: " + strings.Join(s.Addrs, ",")
	if s.Target.Backend == nil {
		return errors.New("conformance: a cluster that is named by address is looked at through Target.Backend, which is nil")
	}
	ctx, cancel := context.WithTimeout(ctx, s.scale(10*time.Second))
	defer cancel()
	b, closed, err := s.connect(ctx, s.scale(3*time.Second))
	if err != nil {
		return err
	}
	defer closed()
	nodes, err := mastersOf(ctx, b)
	if err != nil {
		return err
	}
	s.servers.Masters = len(nodes)
	for _, n := range nodes {
		s.servers.Replicas += n.replicas
	}
	info, _ := b.Do(ctx, "x", []string{"INFO", "server"})
	text, _ := info.(string)
	s.servers.Name, s.servers.Version = versionOf(text)
	return nil
}

// connect opens the backend under test.
func (s *suite) connect(ctx context.Context, patience time.Duration) (replset.Backend, func(), error) {
	c := Connection{Addrs: s.Addrs, Password: s.Target.Servers.Password, Patience: patience}
	if s.cluster != nil {
		c.Addrs = s.cluster.Addrs()
	}
	b, closed, err := s.Target.Backend(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	if b == nil {
		return nil, nil, errors.New("conformance: Target.Backend returned neither a backend nor an error")
	}
	if closed == nil {
		closed = func() {}
	}
	s.used = true
	return b, closed, nil
}

// A master is a node of CLUSTER SLOTS.
type master struct {
	addr     string
	slot     uint16 // one that it owns
	replicas int
}

// mastersOf reads CLUSTER SLOTS through the backend.
func mastersOf(ctx context.Context, b replset.Backend) ([]master, error) {
	v, err := b.Do(ctx, "x", []string{"CLUSTER", "SLOTS"})
	if err != nil {
		return nil, fmt.Errorf("conformance: CLUSTER SLOTS: %w", err)
	}
	ranges, _ := v.([]any)
	var nodes []master
	for _, r := range ranges {
		r, _ := r.([]any)
		if len(r) < 3 {
			return nil, fmt.Errorf("conformance: CLUSTER SLOTS: %v is no range", r)
		}
		first, _ := r[0].(int64)
		node, _ := r[2].([]any)
		if len(node) < 2 {
			return nil, fmt.Errorf("conformance: CLUSTER SLOTS: %v is no node", r[2])
		}
		addr := fmt.Sprint(node[0], ":", node[1])
		if !slices.ContainsFunc(nodes, func(m master) bool { return m.addr == addr }) {
			nodes = append(nodes, master{addr, uint16(first), len(r) - 3})
		}
	}
	if len(nodes) == 0 {
		return nil, errors.New("conformance: CLUSTER SLOTS names no master")
	}
	return nodes, nil
}

func versionOf(info string) (name, number string) {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[k] = v
		}
	}
	if v := fields["valkey_version"]; v != "" { // it claims to be Redis 7.2.4 besides
		return "valkey", v
	}
	return "redis", fields["redis_version"]
}

// state describes the servers.
func (s *suite) state() string {
	if s.cluster == nil {
		return s.servers.Provider
	}
	return s.stateOf(s.cluster.Group)
}

func (s *suite) stateOf(g *harness.Group) string {
	ctx, cancel := context.WithTimeout(context.Background(), s.scale(5*time.Second))
	defer cancel()
	var b strings.Builder
	fmt.Fprintln(&b, g.Provider())
	for _, n := range g.Nodes() {
		fmt.Fprintf(&b, "%s: %v", n, n.State(ctx))
		if v, err := n.Do(ctx, "CLUSTER", "NODES"); err == nil {
			for line := range strings.Lines(fmt.Sprint(v)) {
				if f := strings.Fields(line); len(f) > 7 && strings.Contains(f[2], "myself") {
					fmt.Fprintf(&b, ", %s, slots %.120s", strings.TrimPrefix(f[2], "myself,"), strings.Join(f[8:], " "))
				}
			}
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprint(&b, g.Timeline())
	return b.String()
}

// mend brings the servers back after a case that broke them. A case that hangs may go on breaking them: then, and where they do not
// recover, they are given up, and the next case gets others.
func (s *suite) mend(r *Result, hung bool) {
	if s.cluster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.scale(30*time.Second))
	defer cancel()
	err := errors.New("the case hangs, and may go on to break them")
	if !hung {
		err = restore(ctx, s.cluster)
	}
	if err == nil {
		return
	}
	s.Log("the servers after %s: %v", r.ID, err)
	if !s.own {
		s.noneYet = fmt.Errorf("conformance: the servers are not well since %s: %w", r.ID, err)
		return
	}
	s.discard()
}

// discard gives the suite's own servers up: the next case that needs some gets others.
func (s *suite) discard() {
	if s.own {
		_ = s.cluster.Close()
	}
	s.cluster, s.own, s.tried = nil, false, false
}

// restore thaws and restarts what is frozen or dead, and waits for the cluster to agree.
func restore(ctx context.Context, c *harness.Cluster) error {
	if err := revive(ctx, c.Group); err != nil {
		return err
	}
	return c.WaitReady(ctx)
}

func revive(ctx context.Context, g *harness.Group) error {
	for _, n := range g.Nodes() {
		switch n.State(ctx) {
		case harness.Frozen:
			if err := n.Thaw(); err != nil {
				return err
			}
		case harness.Dead:
			if err := n.Restart(ctx, harness.Empty); err != nil {
				return err
			}
		}
	}
	return nil
}

// close deletes the run's keys from servers that stay, and ends those that do not.
func (s *suite) close() error {
	if s.own {
		return s.cluster.Close()
	}
	if !s.used || s.Serverless {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.scale(2*time.Minute))
	defer cancel()
	b, closed, err := s.connect(ctx, s.scale(3*time.Second))
	if err == nil {
		defer closed()
		err = deletePrefix(ctx, b, s.Prefix)
	}
	if err != nil {
		return fmt.Errorf("conformance: keys that begin with %q may be left: %w", s.Prefix, err)
	}
	return nil
}

// deletePrefix deletes every key that begins with the prefix, and looks again until there is none: an attempt of a call that was given up
// may land late.
func deletePrefix(ctx context.Context, b replset.Backend, prefix string) error {
	nodes, err := mastersOf(ctx, b)
	if err != nil {
		return err
	}
	for again := true; again; {
		again = false
		for _, n := range nodes {
			found, err := deleteOn(ctx, b, slotmap.KeyForSlot("x", n.slot), prefix)
			if err != nil {
				return err
			}
			again = again || found > 0
		}
	}
	return nil
}

func deleteOn(ctx context.Context, b replset.Backend, route, prefix string) (found int, err error) {
	for cursor := "0"; ; {
		v, err := b.Do(ctx, route, []string{"SCAN", cursor, "MATCH", prefix + "*", "COUNT", "1000"})
		if err != nil {
			return found, fmt.Errorf("conformance: SCAN: %w", err)
		}
		page, _ := v.([]any)
		if len(page) != 2 {
			return found, fmt.Errorf("conformance: SCAN: the reply is %v", v)
		}
		keys, _ := page[1].([]any)
		var names []string
		var cmds [][]string
		for _, k := range keys {
			name, _ := k.(string)
			names, cmds = append(names, name), append(cmds, []string{"DEL", name})
		}
		for _, v := range b.Pipeline(ctx, names, cmds) {
			if err, failed := v.(error); failed {
				return found, fmt.Errorf("conformance: DEL: %w", err)
			}
		}
		found += len(names)
		if cursor, _ = page[0].(string); cursor == "0" || cursor == "" {
			return found, nil
		}
	}
}

// checkPrefix refuses what could not be a set's name, or would match keys of others.
func checkPrefix(prefix string) error {
	if strings.ContainsAny(prefix, `{}*?[]\`) || len(prefix) < 4 {
		return fmt.Errorf("conformance: Target.Prefix %q: give at least four characters, and none of {}*?[]\\", prefix)
	}
	return nil
}
