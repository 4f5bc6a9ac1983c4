package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/shardkit/shardkit/bench"
	"github.com/shardkit/shardkit/bench/report"
	"github.com/shardkit/shardkit/bench/scenarios"
)

type benchGateCmd struct {
	server
	Old      string         `required:"" help:"The shardkit command built from what is there." placeholder:"BIN" type:"existingfile"`
	New      string         `required:"" help:"The one built from what is to come." placeholder:"BIN" type:"existingfile"`
	Server   string         `help:"Server binary for a cluster of its own; by default $$SHARDKIT_SERVER, redis-server or valkey-server." placeholder:"FILE"`
	Duration *time.Duration `help:"How long to measure each batch; there are one or two for each scenario." placeholder:"6s"`
	Rounds   int            `help:"How many times the builds are compared in a batch: 5 to 1000." placeholder:"9"`
	Seed     uint64         `help:"Repeats what a run drew at random." placeholder:"N"`
	Markdown string         `help:"Write the decision to this file, for a comment on a pull request." placeholder:"FILE"`
	Out      string         `help:"Write what was measured into this folder, in every format." placeholder:"DIR"`
	Name     []string       `arg:"" optional:"" help:"Scenarios, or parts of them; by default intersect-100, count, publish-20-strings, delta, cache-get, cache-set and ring-ways; with --addr, without those of the cache."`

	parts []scenarios.Part
}

func (benchGateCmd) Help() string {
	return `Both builds run on the same servers and take turns every few milliseconds; the old one runs twice, which tells what noise alone does.
What is slower, by more than 10 % and twice the noise, is measured once more with fresh processes. Commands, bytes and allocations
per operation are exact, and gated on any machine.

Exit codes: 0 nothing is worse, 1 something is, 2 inconclusive (too much noise, or something went wrong) or wrong usage.

Example:
  shardkit bench gate --old bin/shardkit-main --new bin/shardkit --markdown comment.md`
}

// Validate reports what is wrong with the command line.
func (c *benchGateCmd) Validate() (err error) {
	if len(c.Name) == 0 {
		c.Name = []string{"intersect-100", "count", "publish-20-strings", "delta", "ring-ways"}
		if len(c.Addr) == 0 {
			c.Name = append(c.Name, "cache-get", "cache-set")
		}
	}
	if c.parts, err = scenarios.Select(false, c.Name...); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "bench: "))
	}
	for _, p := range c.parts {
		if !p.CanGate() {
			return fmt.Errorf("%s cannot compare builds: leave it out", p.Name)
		}
	}
	switch {
	case c.Server != "" && len(c.Addr) > 0:
		return errors.New("--server is for servers of its own, --addr for yours: give one of them")
	case c.Duration != nil && *c.Duration <= 0:
		return errors.New("--duration must be more than 0")
	case c.Rounds != 0 && (c.Rounds < 5 || c.Rounds > 1000):
		return errors.New("--rounds must be 5 to 1000")
	}
	return needsOwnServers(c.parts, c.server)
}

func (c *benchGateCmd) Run(ctx context.Context, con console) error {
	decision, where, results, err := c.gate(ctx, con)
	if len(results) > 0 && c.Out != "" {
		r := bench.NewReport(results...)
		r.Servers = where
		_, outErr := report.WriteDir(c.Out, r)
		err = errors.Join(err, outErr)
	}
	if decision != nil {
		err = errors.Join(err, decision.WriteTable(con.out), writeTo(c.Markdown, decision.WriteMarkdown))
	}
	if err != nil {
		return exitWith{exitInconclusive, fmt.Errorf("inconclusive: %w", err)}
	}
	return asExit(decision)
}

func (c *benchGateCmd) gate(ctx context.Context, con console) (_ *bench.Decision, where string, results []*bench.Result, err error) {
	target, where, end, err := benchServers(ctx, c.parts, c.server, c.Server)
	if err != nil {
		return nil, "", nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	fmt.Fprintf(con.out, "%s\n\n", where)
	watch := newBenchWatch(con)
	defer watch.end()
	decision := &bench.Decision{}
	for i, p := range c.parts {
		o := &scenarios.Options{Rounds: c.Rounds, Seed: c.Seed, Progress: func(pr scenarios.Progress) {
			pr.Number, pr.Of, pr.ETA = i+1, len(c.parts), 0
			watch.update(pr)
		}}
		if c.Duration != nil {
			o.Duration = *c.Duration
		}
		build := func(bin string) func() *exec.Cmd {
			return func() *exec.Cmd { return exec.Command(bin, workerArgs(c.server, target, p)...) }
		}
		d, batches, err := scenarios.Gate(ctx, p, target, o, build(c.Old), build(c.New))
		for n, b := range batches {
			if n > 0 {
				b.Scenario += "." + strconv.Itoa(n+1)
			}
		}
		results = append(results, batches...)
		if err != nil {
			return decision, where, results, fmt.Errorf("%s: %w", p.Name, err)
		}
		decision.Add(d)
	}
	return decision, where, results, nil
}

// workerArgs name a part, and the servers that this process has for it.
func workerArgs(s server, t *scenarios.Target, p scenarios.Part) []string {
	args := []string{"bench", "worker", p.Name}
	switch parts := []scenarios.Part{p}; {
	case scenarios.NeedCluster(parts):
		args = append(args, "--addr", strings.Join(t.Client.Options().Addrs, ","))
	case scenarios.NeedShards(parts):
		var addrs []string
		for _, client := range t.Shards {
			addrs = append(addrs, client.Options().Addr)
		}
		return append(args, "--shards", strings.Join(addrs, ","))
	}
	for _, given := range [][2]string{{"--user", s.User}, {"--password-file", s.PasswordFile}, {"--ca", s.CA}} {
		if given[1] != "" {
			args = append(args, given[0], given[1])
		}
	}
	if s.TLS {
		args = append(args, "--tls")
	}
	return args
}

// benchWorkerCmd is the other side of the gate, and of the reader: it does operations as it is asked for them on the standard input.
type benchWorkerCmd struct {
	server
	Shards []string
	Name   string `arg:""`
}

func (c *benchWorkerCmd) Run(ctx context.Context, con console) error {
	// Ctrl-C reaches this process too. The one that asks ends it, when it has what it needs; and should that one be killed,
	// nothing reads the output any more, which must not keep this one from removing its keys.
	ctx = context.WithoutCancel(ctx)
	signal.Ignore(syscall.SIGPIPE)
	parts, err := scenarios.Select(true, c.Name)
	if err != nil {
		return err
	}
	if len(parts) != 1 {
		return fmt.Errorf("%s has several parts: name one", c.Name)
	}
	target := &scenarios.Target{Shards: shardClients(c.Shards)}
	for _, client := range target.Shards {
		defer client.Close()
	}
	if scenarios.NeedCluster(parts) {
		client, err := c.connect(ctx, recommended)
		if err != nil {
			return err
		}
		defer client.Close()
		target.Client = client
	}
	return scenarios.Serve(ctx, parts[0], target, con.in, con.out)
}

type benchCompareCmd struct {
	Ours     string `help:"The variant that may not become worse." default:"shardkit" placeholder:"NAME"`
	Markdown string `help:"Write the decision to this file, for a comment on a pull request." placeholder:"FILE"`
	Old      string `arg:"" help:"An older report, of bench run --json." type:"existingfile"`
	New      string `arg:"" help:"A newer one." type:"existingfile"`
}

func (benchCompareCmd) Help() string {
	return `Counters per operation and ratios between the variants of a run are gated: they hold from one machine to another. Latencies do not, and
are shown alone.

Exit codes: 0 nothing is worse, 1 something is, 2 inconclusive (too much noise, parts that only one report has) or wrong usage.

Example:
  shardkit bench compare old.json new.json`
}

func (c *benchCompareCmd) Run(con console) error {
	old, err := bench.ReadReport(c.Old)
	if err != nil {
		return exitWith{exitInconclusive, err}
	}
	now, err := bench.ReadReport(c.New)
	if err != nil {
		return exitWith{exitInconclusive, err}
	}
	fmt.Fprintf(con.out, "old: %s\nnew: %s\n\n", old.Where(), now.Where())
	d := bench.CompareReports(old, now, c.Ours)
	if err := errors.Join(d.WriteTable(con.out), writeTo(c.Markdown, d.WriteMarkdown)); err != nil {
		return exitWith{exitInconclusive, err}
	}
	return asExit(d)
}

// asExit is nil if the decision is a pass.
func asExit(d *bench.Decision) error {
	switch d.Outcome {
	case bench.Pass:
		return nil
	case bench.Regression:
		return exitWith{exitFailed, errors.New(d.Headline())}
	}
	return exitWith{exitInconclusive, errors.New(d.Headline())}
}

// writeTo writes a file, if one is named.
func writeTo(file string, write func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}
