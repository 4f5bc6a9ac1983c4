package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"github.com/shardkit/shardkit/replset"
)

type setProbeCmd struct {
	setFlags
}

func (setProbeCmd) Help() string {
	return `It writes nothing. Exit 1 if a node does not answer.

Example:
  shardkit set probe --addr 127.0.0.1:7000 --name active`
}

// ways says what is not as good as it could be where a node allows no better.
var ways = []struct {
	rung replset.Rung
	cost string
}{
	{replset.RungKey, "one call for each replica, so members travel as often; the order of writes is kept as by node scripts"},
	{replset.RungTx, "scripts are refused; a writer that stalls for 10 s may put an older write over a newer one, which verify finds"},
}

func (c setProbeCmd) Run(ctx context.Context, con console) error {
	set, end, err := c.open(ctx, replset.Options{})
	if err != nil {
		return err
	}
	defer end()
	probes, err := set.Probe(ctx)
	if err != nil {
		return err
	}
	var silent []error
	for _, p := range probes {
		if p.Err != nil {
			silent = append(silent, fmt.Errorf("%s: %w", p.Addr, p.Err))
		}
	}
	return errors.Join(c.print(con, probes), errors.Join(silent...))
}

func (c setProbeCmd) print(con console, probes []replset.NodeProbe) error {
	if c.JSON {
		type node struct {
			Addr    string       `json:"addr"`
			Slots   int          `json:"slots"`
			Way     replset.Rung `json:"way,omitempty"`
			Restore bool         `json:"restore"`
			Error   string       `json:"error,omitempty"`
		}
		nodes := []node{}
		for _, p := range probes {
			n := node{p.Addr, p.Slots, p.Rung, p.Restore, ""}
			if p.Err != nil {
				n.Error = oneLine(p.Err)
			}
			nodes = append(nodes, n)
		}
		return json.NewEncoder(con.out).Encode(struct {
			Set   string `json:"set"`
			Nodes []node `json:"nodes"`
		}{c.Name, nodes})
	}
	tab := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "MASTER\tSLOTS\tWRITES BY\tRESTORE")
	seen := map[replset.Rung]bool{}
	for _, p := range probes {
		way, restore := string(p.Rung), "no"
		switch {
		case p.Err != nil:
			way, restore = "no answer", "-"
		case p.Restore:
			restore = "yes"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", p.Addr, thousands(p.Slots), way, restore)
		seen[p.Rung] = true
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, w := range ways {
		if seen[w.rung] {
			fmt.Fprintf(con.out, "\n%s", wrap(string(w.rung)+": "+w.cost, ""))
		}
	}
	if seen[replset.RungKey] || seen[replset.RungTx] {
		fmt.Fprintln(con.out)
	}
	return nil
}
