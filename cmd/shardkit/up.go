package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/shardkit/shardkit/harness"
)

type upCmd struct {
	Cluster upClusterCmd `cmd:"" help:"A Redis Cluster."`
	Shards  upShardsCmd  `cmd:"" help:"Independent Redis servers."`
}

type upFlags struct {
	Server  string `help:"Server binary; by default $$SHARDKIT_SERVER, redis-server or valkey-server." placeholder:"FILE"`
	Persist bool   `help:"Keep an append-only file while they run."`
}

func (f upFlags) options() harness.Options {
	return harness.Options{Server: f.Server, Persist: f.Persist, Private: true}
}

type upClusterCmd struct {
	upFlags
	Masters  int `help:"Number of masters." default:"3"`
	Replicas int `help:"Replicas of each master." default:"0"`
}

func (upClusterCmd) Help() string {
	return `Example:
  shardkit up cluster --masters 3 --replicas 1`
}

func (c upClusterCmd) Run(ctx context.Context, con console) error {
	if c.Masters < 1 || c.Replicas < 0 {
		return fmt.Errorf("up cluster: %d masters with %d replicas each: give at least 1 and 0", c.Masters, c.Replicas)
	}
	o := c.options()
	o.Masters, o.Replicas = c.Masters, c.Replicas
	start := time.Now()
	fmt.Fprintln(con.err, "starting a cluster, about 2 s")
	cluster, err := harness.StartCluster(ctx, o)
	if err != nil {
		return err
	}
	return hold(ctx, con, cluster.Group, "SHARDKIT_CLUSTER", start)
}

type upShardsCmd struct {
	upFlags
	Shards int `help:"Number of servers." default:"3"`
}

func (upShardsCmd) Help() string {
	return `Example:
  shardkit up shards --shards 2`
}

func (c upShardsCmd) Run(ctx context.Context, con console) error {
	if c.Shards < 1 {
		return fmt.Errorf("up shards: %d servers: give at least 1", c.Shards)
	}
	o := c.options()
	o.Shards = c.Shards
	start := time.Now()
	shards, err := harness.StartShards(ctx, o)
	if err != nil {
		return err
	}
	return hold(ctx, con, shards.Group, "SHARDKIT_SHARDS", start)
}

// hold shows what was started and keeps it until ctx ends.
func hold(ctx context.Context, con console, g *harness.Group, variable string, start time.Time) error {
	fmt.Fprintf(con.err, "%s, ready in %s\n", g.Provider(), seconds(time.Since(start)))
	for _, n := range g.Nodes() {
		fmt.Fprintf(con.err, "  %-8s  %s\n", n.Name(), n.Addr())
	}
	fmt.Fprintf(con.out, "export %s=%s\n", variable, strings.Join(g.Addrs(), ","))
	fmt.Fprintln(con.err, "Ctrl-C ends them")
	<-ctx.Done()
	fmt.Fprintln(con.err, "\nending the servers")
	return g.Close()
}
