package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"text/tabwriter"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

func (versionCmd) Help() string {
	return `REVISION is the commit that it was built from; a * means that files had been changed since. Modules that were taken from the same tree have
no version of their own: (devel).

Examples:
  shardkit version
  shardkit version --json`
}

// build is what a binary knows of how it was built.
type build struct {
	Version  string            `json:"version"`            // of this command; (devel) where it was not installed by its version
	Revision string            `json:"revision,omitempty"` // the commit, where it was built in a repository
	Time     string            `json:"time,omitempty"`     // of the commit
	Modified bool              `json:"modified,omitempty"` // since the commit
	Go       string            `json:"go"`
	Modules  map[string]string `json:"modules"` // versions, by path
}

func buildOf(info *debug.BuildInfo) build {
	b := build{Version: version(&info.Main), Go: info.GoVersion, Modules: map[string]string{}}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	for _, m := range info.Deps {
		b.Modules[m.Path] = version(m)
	}
	return b
}

// version is (devel) for a module that was not taken by its version.
func version(m *debug.Module) string {
	for m.Replace != nil {
		m = m.Replace
	}
	if m.Version == "" {
		return "(devel)"
	}
	return m.Version
}

func (c versionCmd) Run(con console) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("version: this binary has no build information: build it with go build or go install")
	}
	b := buildOf(info)
	if c.JSON {
		e := json.NewEncoder(con.out)
		e.SetIndent("", "  ")
		return e.Encode(b)
	}
	revision := b.Revision
	if b.Modified {
		revision += "*"
	}
	tab := tabwriter.NewWriter(con.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "shardkit\t%s\n", b.Version)
	if revision != "" {
		fmt.Fprintf(tab, "revision\t%s %s\n", revision, b.Time)
	}
	fmt.Fprintf(tab, "go\t%s\n", b.Go)
	for _, path := range slices.Sorted(maps.Keys(b.Modules)) {
		fmt.Fprintf(tab, "%s\t%s\n", path, b.Modules[path])
	}
	return tab.Flush()
}
