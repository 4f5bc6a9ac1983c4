package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A member is one line of CLUSTER NODES: a node as another one sees it.
type member struct {
	id, addr string
	flags    []string // such as "myself", "master", "slave", "fail?"
	master   string   // the id of a replica's master, else ""
	epoch    uint64   // of its claim to its slots
	slots    [][2]int // first and last, in order
}

func (m member) is(flag string) bool { return slices.Contains(m.flags, flag) }

func parseMembers(text string) ([]member, error) {
	var members []member
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 8 {
			return nil, fmt.Errorf("harness: CLUSTER NODES: a line of %d fields, want 8 or more: %q", len(f), line)
		}
		m := member{id: f[0], addr: memberAddr(f[1]), flags: strings.Split(f[2], ",")}
		if f[3] != "-" {
			m.master = f[3]
		}
		var err error
		if m.epoch, err = strconv.ParseUint(f[6], 10, 64); err != nil {
			return nil, fmt.Errorf("harness: CLUSTER NODES: epoch %q: %w", f[6], err)
		}
		for _, r := range f[8:] {
			if strings.HasPrefix(r, "[") {
				continue // a slot on the move: it still belongs to its source
			}
			lo, hi, isRange := strings.Cut(r, "-")
			if !isRange {
				hi = lo
			}
			first, err1 := strconv.Atoi(lo)
			last, err2 := strconv.Atoi(hi)
			if err1 != nil || err2 != nil || first < 0 || first > last || last >= Slots {
				return nil, fmt.Errorf("harness: CLUSTER NODES: slots %q: want first-last", r)
			}
			m.slots = append(m.slots, [2]int{first, last})
		}
		members = append(members, m)
	}
	return members, nil
}

// memberAddr turns host:port@bus,hostname into the form that net.Dial takes; servers put no brackets around IPv6 hosts.
func memberAddr(field string) string {
	addr, _, _ := strings.Cut(field, "@")
	colon := strings.LastIndexByte(addr, ':')
	if colon < 0 || !strings.Contains(addr[:colon], ":") {
		return addr
	}
	return net.JoinHostPort(addr[:colon], addr[colon+1:])
}

// A view is the cluster as one node sees it.
type view struct {
	node    *Node
	members []member
	ok      bool // cluster_state:ok
	linked  bool // master_link_status:up, or no replica
}

func (v *view) myself() member {
	for _, m := range v.members {
		if m.is("myself") {
			return m
		}
	}
	return member{}
}

// slotMap is the view's claim of who owns what, in a form to compare.
func (v *view) slotMap() string {
	var claims []string
	for _, m := range v.members {
		if len(m.slots) > 0 {
			claims = append(claims, fmt.Sprint(m.id, m.slots))
		}
	}
	slices.Sort(claims)
	return strings.Join(claims, " ")
}

// viewTimeout bounds the wait for one node's view. A node may be frozen without the harness knowing.
const viewTimeout = time.Second

func (n *Node) view(ctx context.Context) (*view, error) {
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	replies, err := n.Pipeline(ctx, []string{"CLUSTER", "INFO"}, []string{"CLUSTER", "NODES"}, []string{"INFO", "replication"})
	if err != nil {
		return nil, err
	}
	var texts [3]string
	for i, r := range replies {
		switch r := r.(type) {
		case string:
			texts[i] = r
		case ReplyError:
			return nil, n.errorf("look at the cluster: %w", r)
		default:
			return nil, n.errorf("look at the cluster: a reply is a %T, want text", r)
		}
	}
	members, err := parseMembers(texts[1])
	if err != nil {
		return nil, err
	}
	return &view{
		node:    n,
		members: members,
		ok:      infoField(texts[0], "cluster_state") == "ok",
		linked:  infoField(texts[2], "role") == "master" || infoField(texts[2], "master_link_status") == "up",
	}, nil
}

// allViews asks every node that was not killed or frozen by the harness, all at once. It returns the views that came, and an
// error for those that did not.
func (c *Cluster) allViews(ctx context.Context) ([]*view, error) {
	views := make([]*view, len(c.nodes))
	errs := make([]error, len(c.nodes))
	var wg sync.WaitGroup
	for i, n := range c.nodes {
		if n.running() {
			wg.Go(func() { views[i], errs[i] = n.view(ctx) })
		}
	}
	wg.Wait()
	return slices.DeleteFunc(views, func(v *view) bool { return v == nil }), errors.Join(errs...)
}

// views is allViews for those who can do with less than all of them.
func (c *Cluster) views(ctx context.Context) ([]*view, error) {
	views, err := c.allViews(ctx)
	if len(views) > 0 {
		return views, nil
	}
	if err == nil {
		err = errors.New("harness: every node of the cluster is killed or frozen")
	}
	return nil, err
}

// table returns the owner's id for each slot. Of two claims the one with the higher epoch wins, as in the cluster's own protocol.
func (c *Cluster) table(ctx context.Context) (*[Slots]string, error) {
	views, err := c.views(ctx)
	if err != nil {
		return nil, err
	}
	var owner [Slots]string
	var epoch [Slots]uint64
	for _, v := range views {
		for _, m := range v.members {
			for _, r := range m.slots {
				for s := r[0]; s <= r[1]; s++ {
					if owner[s] == "" || m.epoch > epoch[s] {
						owner[s], epoch[s] = m.id, m.epoch
					}
				}
			}
		}
	}
	return &owner, nil
}
