package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/shardkit/shardkit/bench/scenarios"
)

type benchCmd struct {
	List    benchListCmd    `cmd:"" help:"List what can be measured."`
	Run     benchRunCmd     `cmd:"" help:"Measure, on servers of its own or on your cluster."`
	Gate    benchGateCmd    `cmd:"" help:"Compare two builds of shardkit that take turns on the same servers, and fail on a regression."`
	Compare benchCompareCmd `cmd:"" help:"Compare two reports by what holds from one machine to another, and fail on a regression."`
	Worker  benchWorkerCmd  `cmd:"" hidden:""`
}

type benchListCmd struct {
	JSON bool `name:"json" help:"One JSON object a line, with the parts of each scenario."`
}

func (benchListCmd) Help() string {
	return `Example:
  shardkit bench list`
}

type benchLine struct {
	Name    string      `json:"name"`
	Doc     string      `json:"doc"`
	Cluster bool        `json:"cluster"`
	Load    bool        `json:"load"`
	Parts   []benchPart `json:"parts"`
}

type benchPart struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	Long bool   `json:"long"`
}

func (c benchListCmd) Run(con console) error {
	if c.JSON {
		e := json.NewEncoder(con.out)
		for _, s := range scenarios.All() {
			l := benchLine{Name: s.Name, Doc: s.Doc, Cluster: s.Cluster, Load: s.Load}
			for _, p := range s.Parts {
				l.Parts = append(l.Parts, benchPart{p.Name, p.Doc, p.Long})
			}
			if err := e.Encode(l); err != nil {
				return err
			}
		}
		return nil
	}
	tab := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
	for _, s := range scenarios.All() {
		fmt.Fprintf(tab, "%s\t%s\n", s.Name, s.Doc)
	}
	return tab.Flush()
}
