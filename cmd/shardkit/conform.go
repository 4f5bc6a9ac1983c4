package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/backends/goredis"
	"github.com/shardkit/shardkit/conformance"
	"github.com/shardkit/shardkit/conformance/prop"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/tiercache"
)

type conformCmd struct {
	server
	Client   string   `help:"Client whose adapter is checked: goredis or rueidis." enum:"goredis,rueidis" default:"goredis"`
	Profile  []string `help:"What to check: slots, replset, ring, tiercache." default:"slots,replset" placeholder:"NAME"`
	Tier     []string `help:"Which cases to run: contract, property, live, fault; all by default." placeholder:"NAME"`
	Property bool     `help:"Also try random memberships, keys, and sequences of writes and repairs, each against a model."`
	Case     []string `help:"Run these cases alone, by id or name." placeholder:"ID"`
	Server   string   `help:"Server binary for servers of its own; by default $$SHARDKIT_SERVER, redis-server or valkey-server." placeholder:"FILE"`
	Report   string   `help:"Write the report here as JSON, and beside it as JUnit XML and Markdown." placeholder:"FILE"`
	Expect   string   `help:"Fail unless every case has the status that it has in this report." placeholder:"FILE"`
	Seed     uint64   `help:"Repeats what a run drew at random; its report tells the number." placeholder:"N"`
	Slack    float64  `help:"Multiplies every time-out, for slow machines." placeholder:"1"`
}

func (conformCmd) Help() string {
	return `Without --addr it starts a cluster of its own, three masters with a replica each, and breaks it: nodes are frozen and killed, slots move. Profile tiercache is checked on one server by itself.

With --addr it only uses your cluster, or for profile tiercache your one server, under keys that begin with "shardkit-conformance" and a
random word, and leaves no key, also when interrupted: in the end it looks through all keys by SCAN. Cases that break servers are then
unavailable.

Examples:
  shardkit conform --client rueidis --report rueidis.json
  shardkit conform --addr 127.0.0.1:7000 --profile replset --report report.json
  shardkit conform --addr 127.0.0.1:6379 --profile tiercache
  shardkit conform --case RS-207 --seed 42
  shardkit conform --property --tier property`
}

// Validate reports what is wrong with the command line.
func (c *conformCmd) Validate() error {
	if c.Server != "" && len(c.Addr) > 0 {
		return errors.New("--server is for servers of its own, --addr for yours: give one of them")
	}
	if c.Slack < 0 {
		return errors.New("--slack must be more than 0")
	}
	if c.Report != "" {
		if info, err := os.Stat(filepath.Dir(c.Report)); err != nil || !info.IsDir() {
			return fmt.Errorf("--report: there is no folder %s", filepath.Dir(c.Report))
		}
	}
	return nil
}

func (c *conformCmd) Run(ctx context.Context, con console) error {
	var expected *conformance.Report
	if c.Expect != "" {
		r, err := conformance.ReadReport(c.Expect)
		if err != nil {
			return fmt.Errorf("--expect: %w", err)
		}
		expected = &r
	}
	target, err := c.target(ctx)
	if err != nil {
		return err
	}
	target.OnResult = func(r conformance.Result) { progress(con, r) }
	report, runErr := conformance.Execute(ctx, target)
	if len(report.Cases) == 0 {
		return runErr
	}
	fmt.Fprintln(con.out)
	summary(con, &report)
	if c.Report != "" {
		if err := report.Write(c.Report); err != nil {
			return errors.Join(runErr, err)
		}
		fmt.Fprintf(con.out, "report: %s\n", c.Report)
	}
	if failed := report.Failed(); runErr == nil && len(failed) > 0 {
		runErr = fmt.Errorf("%d cases failed; the first is %s: %s", len(failed), failed[0].ID, failed[0].Requirement)
	}
	if ctx.Err() != nil {
		runErr = errors.Join(errors.New("interrupted"), runErr)
	} else if expected != nil {
		if different := conformance.Differences(expected, &report); len(different) > 0 {
			runErr = errors.Join(runErr, fmt.Errorf("other than in %s: %s", c.Expect, strings.Join(different, "; ")))
		}
	}
	return runErr
}

// target is what the flags say to check.
func (c *conformCmd) target(ctx context.Context) (conformance.Target, error) {
	t := conformance.Target{
		Name: c.Client, Only: c.Case, Seed: c.Seed, Slack: c.Slack,
		Features: []conformance.Feature{conformance.ReplicaReader, conformance.Tracker, conformance.Dedicator},
		Servers:  harness.Options{Server: c.Server},
		Ring:     conformance.ShardkitRing(nil),
		Rerun:    c.again(),
	}
	if c.Property {
		t.Cases, t.Features = prop.Cases(), append(t.Features, prop.Weights)
	}
	for _, p := range c.Profile {
		t.Profiles = append(t.Profiles, conformance.Profile(p))
	}
	for _, tier := range c.Tier {
		t.Tiers = append(t.Tiers, conformance.Tier(tier))
	}
	var o *redis.ClusterOptions // how to log in to the user's cluster
	if len(c.Addr) > 0 {
		var err error
		if o, err = c.options(); err != nil {
			return t, err
		}
		// A client of its own finds out what is wrong, in words.
		if slices.Contains(t.Profiles, conformance.Tiercache) {
			err = checkShard(ctx, o)
		} else {
			var client *redis.ClusterClient
			if client, err = c.connect(ctx); err == nil {
				client.Close()
			}
		}
		if err != nil {
			return t, err
		}
		t.Addrs = o.Addrs
	}
	switch c.Client {
	case clientGoredis:
		t.Client = "github.com/redis/go-redis/v9"
		t.Backend = func(_ context.Context, to conformance.Connection) (replset.Backend, func(), error) {
			options := &redis.ClusterOptions{
				Addrs: to.Addrs, Username: to.Username, Password: to.Password, TLSConfig: to.TLS,
				ClusterStateReloadInterval: time.Second,
			}
			if o != nil {
				options.Username, options.Password, options.TLSConfig = o.Username, o.Password, o.TLSConfig
			}
			options.ReadTimeout, options.WriteTimeout = to.Patience, to.Patience
			client := redis.NewClusterClient(options)
			return goredis.New(client), func() { client.Close() }, nil
		}
	case clientRueidis:
		t.Client = "github.com/redis/rueidis"
		t.Backend = func(_ context.Context, to conformance.Connection) (replset.Backend, func(), error) {
			options := &redis.ClusterOptions{
				Addrs: to.Addrs, Username: to.Username, Password: to.Password, TLSConfig: to.TLS,
				WriteTimeout: to.Patience, ClusterStateReloadInterval: time.Second,
			}
			if o != nil {
				options.Username, options.Password, options.TLSConfig = o.Username, o.Password, o.TLSConfig
			}
			b, end, err := openRueidis(options)
			if err != nil {
				return nil, nil, err
			}
			return b, func() { end() }, nil
		}
	}
	t.Shard = func(_ context.Context, to conformance.Connection) (tiercache.Shard, func(), error) {
		options := redis.Options{
			Addr: to.Addrs[0], Username: to.Username, Password: to.Password, TLSConfig: to.TLS,
			ReadTimeout: to.Patience, WriteTimeout: to.Patience,
		}
		if o != nil {
			options.Username, options.Password, options.TLSConfig = o.Username, o.Password, o.TLSConfig
		}
		s, end, err := openShard(c.Client, options)
		if err != nil {
			return nil, nil, err
		}
		return s, func() { end() }, nil
	}
	return t, nil
}

// checkShard reports why the first server cannot be a cache's shard.
func checkShard(ctx context.Context, o *redis.ClusterOptions) error {
	client := redis.NewClient(&redis.Options{
		Addr: o.Addrs[0], Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, MaxRetries: -1, DialerRetries: 1,
	})
	defer client.Close()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return explain(o.Addrs[0], err)
	}
	if fields := infoFields(info); fields["redis_mode"] == "cluster" || fields["server_mode"] == "cluster" {
		return fmt.Errorf("%s is a node of a cluster: profile tiercache is checked on one server by itself, and apart from slots and replset", o.Addrs[0])
	}
	return nil
}

// again is the command that runs a case, or all, again.
func (c *conformCmd) again() string {
	words := []string{"shardkit conform --client", c.Client, "--profile", strings.Join(c.Profile, ","), "--seed {seed}"}
	if len(c.Addr) > 0 {
		words = append(words, "--addr", strings.Join(c.Addr, ","))
	}
	if c.Server != "" {
		words = append(words, "--server", c.Server)
	}
	if c.Property {
		words = append(words, "--property")
	}
	return strings.Join(append(words, "--case {case}"), " ")
}

func progress(con console, r conformance.Result) {
	status := string(r.Status)
	if r.Reason != "" {
		status += " (" + string(r.Reason) + ")"
	}
	fmt.Fprintf(con.out, "%s  %-28s %s\n", r.ID, r.Name, status)
	if r.Status.Bad() {
		fmt.Fprintf(con.out, "  the requirement: %s\n  seen: %s\n  the servers: %s\n  again: %s\n",
			r.Requirement, indented(r.Seen), indented(r.State), r.Rerun)
	}
}

func indented(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// summary is a line a profile.
func summary(con console, r *conformance.Report) {
	where := r.Servers.Provider
	if r.Servers.Name != "" {
		where = r.Servers.String()
	}
	fmt.Fprintf(con.out, "%s on %s; seed %d\n", r.Implementation.Name, where, r.Seed)
	for _, p := range r.Profiles {
		fmt.Fprintf(con.out, "  %-9s %-14s core: %s; extended: %s\n", p.Profile, p.Verdict, conformance.Counts(p.Core), conformance.Counts(p.Extended))
	}
}
