package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/slotmap"
)

type slotCmd struct {
	server
	JSON bool     `name:"json" help:"One JSON object a line."`
	Key  []string `arg:"" optional:"" help:"Keys; none, or a single -, reads them from the standard input, one a line."`
}

func (slotCmd) Help() string {
	return `Examples:
  shardkit slot 'subs:{42}'
  shardkit slot --json 'a{}b}c' ''
  shardkit slot --addr 127.0.0.1:7000 'subs:{42}'    # also the node that owns the slot`
}

type slotLine struct {
	Key     string `json:"key"`
	HashTag string `json:"hashTag"`
	Slot    uint16 `json:"slot"`
	Tag     string `json:"tag"`
	Node    string `json:"node,omitempty"`
}

func (c slotCmd) Run(ctx context.Context, con console) error {
	var owner func(slot uint16) string
	if len(c.Addr) > 0 {
		client, err := c.connect(ctx)
		if err != nil {
			return err
		}
		defer client.Close()
		if owner, err = owners(ctx, client); err != nil {
			return err
		}
	}
	var tab *tabwriter.Writer
	emit := func(l slotLine) error { return json.NewEncoder(con.out).Encode(l) }
	if !c.JSON {
		tab = tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
		header := "KEY\tHASHED\tSLOT\tTAG"
		if owner != nil {
			header += "\tNODE"
		}
		fmt.Fprintln(tab, header)
		emit = func(l slotLine) error {
			row := fmt.Sprintf("%s\t%s\t%d\t%s", legible(l.Key), legible(l.HashTag), l.Slot, l.Tag)
			if owner != nil {
				row += "\t" + l.Node
			}
			_, err := fmt.Fprintln(tab, row)
			return err
		}
	}
	err := c.each(con, func(key string) error {
		l := slotLine{Key: key, HashTag: slotmap.HashTag(key), Slot: slotmap.Slot(key)}
		l.Tag = slotmap.Tag(l.Slot)
		if owner != nil {
			l.Node = owner(l.Slot)
		}
		return emit(l)
	})
	if err == nil && tab != nil {
		err = tab.Flush()
	}
	return err
}

// each calls f for the keys of the command line, or of the standard input.
func (c slotCmd) each(con console, f func(key string) error) error {
	if len(c.Key) > 0 && !(len(c.Key) == 1 && c.Key[0] == "-") {
		for _, key := range c.Key {
			if err := f(key); err != nil {
				return err
			}
		}
		return nil
	}
	lines := bufio.NewScanner(con.in)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if err := f(lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// legible shows a key so that it keeps to its column: quoted where it is empty,
// has spaces or does not print.
func legible(key string) string {
	quoted := strconv.Quote(key)
	if key == "" || !utf8.ValidString(key) || quoted != `"`+key+`"` {
		return quoted
	}
	for _, r := range key {
		if r == ' ' {
			return quoted
		}
	}
	return key
}

// owners returns a function that names a slot's master.
func owners(ctx context.Context, client *redis.ClusterClient) (func(uint16) string, error) {
	//lint:ignore SA1019 CLUSTER SHARDS lists a failed master's slots like any others
	ranges, err := client.ClusterSlots(ctx).Result()
	if err != nil {
		return nil, err
	}
	return func(slot uint16) string {
		for _, r := range ranges {
			if int(slot) >= r.Start && int(slot) <= r.End && len(r.Nodes) > 0 {
				return r.Nodes[0].Addr
			}
		}
		return ""
	}, nil
}
