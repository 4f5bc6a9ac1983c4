package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/bench/report"
	"github.com/shardkit/shardkit/bench/scenarios"
)

type benchRunCmd struct {
	server
	Server   string         `help:"Server binary for a cluster of its own; by default $$SHARDKIT_SERVER, redis-server or valkey-server." placeholder:"FILE"`
	Long     bool           `help:"Careful figures: all parts, and minutes of them."`
	Duration *time.Duration `help:"How long to measure each part." placeholder:"10s"`
	Rate     *float64       `help:"Operations a second, at fixed times (open loop), where a scenario takes a load." placeholder:"1000"`
	Workers  *int           `help:"Operations in progress at a time, where a scenario takes a load." placeholder:"1"`
	Rounds   *int           `help:"How many times variants are compared: 5 to 1000." placeholder:"9"`
	Seed     uint64         `help:"Repeats what a run drew at random; its result tells the number." placeholder:"N"`
	Peer     []string       `help:"Another program to measure in publish and delta, as NAME=COMMAND." placeholder:"NAME=COMMAND" sep:"none"`
	Details  bool           `help:"Print all percentiles, counters and intervals of each part."`
	JSON     string         `name:"json" help:"Write a report to this file." placeholder:"FILE"`
	Out      string         `help:"Write every format into this folder: JSON, HTML, Markdown, plots, HdrHistogram's, benchstat's." placeholder:"DIR"`
	Name     []string       `arg:"" help:"Scenarios, or parts of them; bench list tells."`

	parts []scenarios.Part
	peers []scenarios.Peer
}

func (benchRunCmd) Help() string {
	return `Variants of a scenario take turns in one run, so that what disturbs one disturbs all. Compare the ratios, and the counters;
milliseconds only hold for this machine and this moment. "noise" is how much one variant differs from itself.

With --addr it works on your cluster, under keys that begin with "skbench", and removes them in the end. Scenarios that publish
fill up to some hundred megabytes, with --long some gigabytes; use a cluster that can take that.

Examples:
  shardkit bench run publish intersect
  shardkit bench run intersect-5000 --rate 2000 --duration 30s
  shardkit bench run publish delta --long --json report.json --server valkey-server
  shardkit bench run intersect ring --out out`
}

// Validate reports what is wrong with the command line.
func (c *benchRunCmd) Validate() error {
	if err := c.validate(); err != nil {
		// The parser puts the command's name before it.
		return errors.New(strings.TrimPrefix(err.Error(), "bench: "))
	}
	return nil
}

func (c *benchRunCmd) validate() (err error) {
	if c.parts, err = scenarios.Select(c.Long, c.Name...); err != nil {
		return err
	}
	if c.Server != "" && len(c.Addr) > 0 {
		return errors.New("--server is for servers of its own, --addr for yours: give one of them")
	}
	for _, given := range []struct {
		flag string
		zero bool
	}{
		{"--duration", c.Duration != nil && *c.Duration == 0},
		{"--rate", c.Rate != nil && !(*c.Rate > 0)},
		{"--workers", c.Workers != nil && *c.Workers == 0},
		{"--rounds", c.Rounds != nil && *c.Rounds == 0},
	} {
		if given.zero {
			return fmt.Errorf("%s must be more than 0", given.flag)
		}
	}
	for _, p := range c.Peer {
		name, command, ok := strings.Cut(p, "=")
		words := strings.Fields(command)
		if !ok || name == "" || len(words) == 0 {
			return fmt.Errorf("--peer: %q is not NAME=COMMAND", p)
		}
		c.peers = append(c.peers, scenarios.Peer{Name: name, Command: words})
	}
	if c.JSON != "" {
		if info, err := os.Stat(filepath.Dir(c.JSON)); err != nil || !info.IsDir() {
			return fmt.Errorf("--json: there is no folder %s", filepath.Dir(c.JSON))
		}
	}
	if err := needsOwnServers(c.parts, c.server); err != nil {
		return err
	}
	return c.options().Check(c.parts)
}

func (c *benchRunCmd) options() *scenarios.Options {
	o := &scenarios.Options{Long: c.Long, Seed: c.Seed}
	if c.Duration != nil {
		o.Duration = *c.Duration
	}
	if c.Rate != nil {
		o.Rate = *c.Rate
	}
	if c.Workers != nil {
		o.Workers = *c.Workers
	}
	if c.Rounds != nil {
		o.Rounds = *c.Rounds
	}
	return o
}

func (c *benchRunCmd) Run(ctx context.Context, con console) (err error) {
	target, where, end, err := benchServers(ctx, c.parts, c.server, c.Server)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("bench: interrupted before anything was measured")
		}
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	if target != nil {
		target.Peers = c.peers
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		target.Worker = func(p scenarios.Part) *exec.Cmd { return exec.Command(exe, workerArgs(c.server, target, p)...) }
	}
	watch := newBenchWatch(con)
	o := c.options()
	o.Progress = watch.update
	results, runErr := scenarios.Run(ctx, c.parts, target, o)
	watch.end()

	if len(results) > 0 {
		err = c.write(con, where, results)
	}
	switch {
	case errors.Is(runErr, bench.ErrInterrupted):
		runErr = errors.New(c.interrupted(results))
	case runErr != nil && len(results) > 0:
		runErr = fmt.Errorf("%w; the parts before it were measured", runErr)
	}
	return errors.Join(runErr, err)
}

// write prints the results, and writes the reports that are wanted: the one also where the other fails.
func (c *benchRunCmd) write(con console, where string, results []*bench.Result) error {
	whole := bench.NewReport(results...)
	whole.Servers = where
	var fileErr error
	if c.JSON != "" {
		fileErr = whole.WriteJSON(c.JSON)
	}
	if c.Out != "" {
		_, err := report.WriteDir(c.Out, whole)
		fileErr = errors.Join(fileErr, err)
	}
	fmt.Fprintf(con.out, "%s; seed %d\n\n", where, results[0].Settings.Seed)
	if err := scenarios.WriteSummary(con.out, results); err != nil {
		return errors.Join(fileErr, err)
	}
	for _, r := range results {
		if !c.Details || len(r.Variants) == 0 || r.Variants[0].Response.Count == 0 {
			continue
		}
		fmt.Fprintln(con.out)
		if err := r.WriteTable(con.out); err != nil {
			return errors.Join(fileErr, err)
		}
	}
	return fileErr
}

// interrupted says what there is after a Ctrl-C.
func (c *benchRunCmd) interrupted(results []*bench.Result) string {
	whole, part := 0, ""
	for _, r := range results {
		switch {
		case !r.Is(bench.Partial):
			whole++
		case len(r.Variants) > 0:
			part = r.Scenario
		}
	}
	if whole == 0 && part == "" {
		return "bench: interrupted before anything was measured"
	}
	text := fmt.Sprintf("bench: interrupted after %d of %d parts", whole, len(c.parts))
	if part != "" {
		text += fmt.Sprintf(" and some of %s", part)
	}
	text += "; what was measured is printed"
	for _, place := range []string{c.JSON, c.Out} {
		if place != "" {
			text += " and in " + place
		}
	}
	return text + ", marked partial"
}
