package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/conformance/prop"
	"github.com/shardkit/shardkit/ring"
)

// judged are the rings that profile ring of package conformance is asked about, and whether they take weights.
var judged = []struct {
	name    string
	weights bool
	options *ring.Options // package ring's own
}{
	{"ring", true, &ring.Options{}},
	{"ring, exact", true, &ring.Options{Placement: ring.Table{Exact: true}}},
	{"ring, classic of 150", true, &ring.Options{Placement: ring.Classic{VirtualNodes: virtualNodes}}},
	{goRedisName, false, nil},
	{"stathat.com/c/consistent, 150", false, nil},
	{"modulo, xxhash", false, nil},
}

// writeConformance writes a line for each ring: which cases it passes. Below it says what the cases ask, and what was seen of each
// that failed.
func writeConformance(ctx context.Context, w io.Writer, seed uint64) error {
	var columns []string
	asked, seen := map[string]string{}, map[string][]string{}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, j := range judged {
		report, err := conformRing(ctx, j.name, j.weights, j.options, seed)
		if err != nil {
			return err
		}
		if columns == nil {
			for _, c := range report.Cases {
				columns = append(columns, c.ID)
				asked[c.ID] = c.Requirement
			}
			slices.Sort(columns)
			fmt.Fprintf(tab, "%-*s\t%s\n", nameWidth, "ring", strings.Join(columns, "\t"))
		}
		cells := make([]string, len(columns))
		for _, c := range report.Cases {
			cells[slices.Index(columns, c.ID)] = string(c.Status)
			if c.Status.Bad() {
				line, _, _ := strings.Cut(c.Seen, "\n")
				seen[c.ID] = append(seen[c.ID], fmt.Sprintf("%s: %.160s", j.name, line))
			}
		}
		fmt.Fprintf(tab, "%s\t%s\n", j.name, strings.Join(cells, "\t"))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, id := range columns {
		fmt.Fprintf(w, "\n%s: %s\n", id, asked[id])
		for _, line := range seen[id] {
			fmt.Fprintln(w, "  "+line)
		}
	}
	return nil
}

func conformRing(ctx context.Context, name string, weights bool, options *ring.Options, seed uint64, tiers ...conformance.Tier) (conformance.Report, error) {
	target := conformance.Target{
		Name: name, Serverless: true, Profiles: []conformance.Profile{conformance.Ring}, Cases: prop.Cases(), Seed: seed, Tiers: tiers,
		Slack: 0.2, // of 20 seconds a property: a look, where the suite's own tests stare
	}
	if weights {
		target.Features = []conformance.Feature{prop.Weights}
	}
	if options != nil {
		target.Ring = conformance.ShardkitRing(options)
		return conformance.Execute(ctx, target)
	}
	made := &madeRings{peer: peers[slices.IndexFunc(peers, func(p peer) bool { return p.name == name })], rings: map[string]placed{}}
	defer made.close(0)
	target.Ring = func(nodes []ring.Node, down ...string) (conformance.Placement, error) {
		var live []string
		for _, n := range nodes {
			if n.Weight != 1 {
				return nil, fmt.Errorf("%s takes no weights", name)
			}
			if !slices.Contains(down, n.Name) {
				live = append(live, n.Name)
			}
		}
		return &byRemoval{made, live}, nil
	}
	return conformance.Execute(ctx, target)
}

// byRemoval is a ring that knows owners alone. What is down is taken out, as these projects do; the second node of a key is the
// owner where the first is not there.
type byRemoval struct {
	made *madeRings
	live []string
}

func (r *byRemoval) Locate(key string) string { return r.made.ring(r.live).locate(key) }

func (r *byRemoval) LocateN(key string, n int) []string {
	var order []string
	live := slices.Clone(r.live)
	for len(order) < n && len(live) > 0 {
		owner := r.made.ring(live).locate(key)
		order = append(order, owner)
		live = slices.DeleteFunc(live, func(name string) bool { return name == owner })
	}
	return order
}

// madeRings keeps the rings made last, for properties ask for the same again.
type madeRings struct {
	peer  peer
	mu    sync.Mutex // a case that takes too long runs on beside the next
	rings map[string]placed
	order []string
}

func (m *madeRings) ring(names []string) placed {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprintf("%q", names)
	r, ok := m.rings[key]
	if !ok {
		m.close(1000)
		r = m.peer.make(slices.Clone(names))
		m.rings[key], m.order = r, append(m.order, key)
	}
	return r
}

// close ends all but the newest few.
func (m *madeRings) close(keep int) {
	for len(m.order) > keep {
		if r := m.rings[m.order[0]]; r.close != nil {
			r.close()
		}
		delete(m.rings, m.order[0])
		m.order = m.order[1:]
	}
}
