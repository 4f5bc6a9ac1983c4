package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/shardkit/shardkit/ring"
)

type ringCmd struct {
	Nodes  []ringNode `required:"" help:"Names of the nodes, as NAME or NAME=WEIGHT." placeholder:"NAME"`
	Add    []ringNode `help:"Nodes that come." placeholder:"NAME"`
	Remove []string   `help:"Nodes that go." placeholder:"NAME"`
	Keys   int        `help:"Place this many keys, key-1 to key-N, where shares are otherwise those of all keys that there could be." placeholder:"N"`
	JSON   bool       `name:"json" help:"Print one JSON object."`

	before, after *ring.Ring // after is nil where nothing comes or goes
}

func (ringCmd) Help() string {
	return `SHARE is the part of the keys that a node has, and OFF how far that is from what its weight makes it.

Examples:
  shardkit ring --nodes shard-1,shard-2,shard-3
  shardkit ring --nodes shard-1,shard-2,shard-3 --add shard-4 --keys 100000
  shardkit ring --nodes small,large=2 --remove small --add other`
}

// ringNode is a node as the command line has it.
type ringNode ring.Node

func (n *ringNode) UnmarshalText(text []byte) error {
	name, weight := strings.TrimSpace(string(text)), 1.0
	if i := strings.LastIndexByte(name, '='); i >= 0 {
		var err error
		if weight, err = strconv.ParseFloat(name[i+1:], 64); err != nil {
			return fmt.Errorf("%q is not NAME=WEIGHT, such as %s=2", name, name[:i])
		}
		name = name[:i]
	}
	*n = ringNode{name, weight}
	return nil
}

// Validate reports what is wrong with the command line.
func (c *ringCmd) Validate() error {
	if err := c.validate(); err != nil {
		// The parser puts the command's name before it.
		return errors.New(strings.TrimPrefix(err.Error(), "ring: "))
	}
	return nil
}

func (c *ringCmd) validate() (err error) {
	if c.Keys < 0 {
		return fmt.Errorf("--keys: %d keys: want a positive number", c.Keys)
	}
	if len(c.Nodes) == 0 {
		return errors.New("--nodes: want the names of the nodes")
	}
	var nodes []ring.Node
	for _, n := range c.Nodes {
		nodes = append(nodes, ring.Node(n))
	}
	if c.before, err = ring.New(nodes, nil); err != nil {
		return err
	}
	if len(c.Add)+len(c.Remove) == 0 {
		return nil
	}
	for _, name := range c.Remove {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(nodes, func(n ring.Node) bool { return n.Name == name })
		if i < 0 {
			return fmt.Errorf("--remove: %w", &ring.NodeError{Name: name, Err: ring.ErrUnknown})
		}
		nodes = slices.Delete(nodes, i, i+1)
	}
	for _, n := range c.Add {
		nodes = append(nodes, ring.Node(n))
	}
	c.after, err = ring.New(nodes, nil)
	return err
}

// ringReport is what the command tells; its shares are from 0 to 1.
type ringReport struct {
	Keys  int         `json:"keys,omitempty"`
	Nodes []ringShare `json:"nodes"`
	Remap *ringRemap  `json:"remap,omitempty"`
}

// ringShare is one node before and after the change, nil where it is no member.
type ringShare struct {
	Name   string   `json:"name"`
	Before *ringOwn `json:"before,omitempty"`
	After  *ringOwn `json:"after,omitempty"`
}

type ringOwn struct {
	Weight float64 `json:"weight"`
	Share  float64 `json:"share"`
	Fair   float64 `json:"fair"` // what its weight makes it
}

func (o *ringOwn) fair() float64 {
	if o == nil {
		return 0
	}
	return o.Fair
}

type ringRemap struct {
	Moved   float64 `json:"moved"`
	Optimum float64 `json:"optimum"`
}

func (c *ringCmd) Run(ctx context.Context, con console) error {
	r, err := c.report(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(con.out).Encode(r)
	}
	return r.print(con.out)
}

func (c *ringCmd) report(ctx context.Context) (ringReport, error) {
	var before, after []float64
	moved := 0.0
	if c.Keys == 0 {
		before = c.before.Shares()
		if c.after != nil {
			after = c.after.Shares()
			change, err := ring.Diff(c.before, c.after)
			if err != nil {
				return ringReport{}, err
			}
			moved = change.Moved
		}
	} else {
		var err error
		if before, after, moved, err = c.place(ctx); err != nil {
			return ringReport{}, err
		}
	}

	r := ringReport{Keys: c.Keys}
	was, is := owned(c.before, before), owned(c.after, after)
	for _, n := range append(slices.Clone(c.Nodes), c.Add...) {
		// A node that goes and comes again, with another weight, is one node.
		if !slices.ContainsFunc(r.Nodes, func(s ringShare) bool { return s.Name == n.Name }) {
			r.Nodes = append(r.Nodes, ringShare{n.Name, was[n.Name], is[n.Name]})
		}
	}
	if c.after != nil {
		r.Remap = &ringRemap{Moved: moved}
		for _, n := range r.Nodes {
			r.Remap.Optimum += max(n.After.fair()-n.Before.fair(), 0)
		}
	}
	return r, nil
}

// place places keys, and returns the parts of them that each node has before and after, and that moved.
func (c *ringCmd) place(ctx context.Context) (before, after []float64, moved float64, err error) {
	before = make([]float64, c.before.Len())
	if c.after != nil {
		after = make([]float64, c.after.Len())
	}
	for i := range c.Keys {
		if i%(1<<16) == 0 && ctx.Err() != nil {
			return nil, nil, 0, ctx.Err()
		}
		key := "key-" + strconv.Itoa(i+1)
		was := c.before.Index(key)
		before[was]++
		if c.after == nil {
			continue
		}
		is := c.after.Index(key)
		after[is]++
		if c.before.Name(was) != c.after.Name(is) {
			moved++
		}
	}
	for _, counts := range [][]float64{before, after} {
		for i := range counts {
			counts[i] /= float64(c.Keys)
		}
	}
	return before, after, moved / float64(c.Keys), nil
}

func owned(r *ring.Ring, shares []float64) map[string]*ringOwn {
	owned := make(map[string]*ringOwn)
	if r == nil {
		return owned
	}
	total := 0.0
	for _, n := range r.Nodes() {
		total += n.Weight
	}
	for i, n := range r.Nodes() {
		owned[n.Name] = &ringOwn{n.Weight, shares[i], n.Weight / total}
	}
	return owned
}

// print shows a table, whose shares and bars are those after the change if there is one.
func (r ringReport) print(out io.Writer) error {
	most, weighted := 0.0, false
	for _, n := range r.Nodes {
		if now := r.now(n); now != nil {
			most, weighted = max(most, now.Share), weighted || now.Weight != 1
		}
	}
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, weight, before, share, off, bar string) {
		cells := []string{name}
		if weighted {
			cells = append(cells, weight)
		}
		if r.Remap != nil {
			cells = append(cells, before)
		}
		cells = append(cells, share, off)
		if bar != "" {
			cells = append(cells, bar)
		}
		fmt.Fprintln(tab, strings.Join(cells, "\t"))
	}
	row("NODE", "WEIGHT", "  BEFORE", "   SHARE", "      OFF", "")
	for _, n := range r.Nodes {
		now := r.now(n)
		if now == nil {
			row(legible(n.Name), "-", percent(n.Before), "       -", "        -", "")
			continue
		}
		row(legible(n.Name), strconv.FormatFloat(now.Weight, 'g', -1, 64), percent(n.Before), percent(now),
			fmt.Sprintf("%+7.2f %%", 100*(now.Share/now.Fair-1)), strings.Repeat("#", int(math.Round(barWidth*now.Share/most))))
	}
	if err := tab.Flush(); err != nil || r.Remap == nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nremap: %.2f %% (optimum %.2f %%)\n", 100*r.Remap.Moved, 100*r.Remap.Optimum)
	return err
}

// now is the node after the change, or as it is where there is none.
func (r ringReport) now(n ringShare) *ringOwn {
	if r.Remap != nil {
		return n.After
	}
	return n.Before
}

// percent keeps to the width of its column.
func percent(o *ringOwn) string {
	if o == nil {
		return "       -"
	}
	return fmt.Sprintf("%6.2f %%", 100*o.Share)
}
