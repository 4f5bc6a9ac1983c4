package tcredis_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"go.uber.org/goleak"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/harness/tcredis"
)

// helperEnv makes this binary the program that a test kills, or that has no Docker.
const helperEnv = "SHARDKIT_TCREDIS_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "":
		goleak.VerifyTestMain(m)
	case "start":
		c, err := harness.StartCluster(context.Background(), options(harness.Options{Replicas: 1}))
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(strings.Join(c.Addrs(), ","))
		if err := c.Nodes()[0].Freeze(); err != nil {
			fmt.Println("error:", err)
		}
		fmt.Println("ready")
		bufio.NewReader(os.Stdin).ReadString('\n')
	case "no docker":
		_, err := harness.StartShards(context.Background(), options(harness.Options{}))
		fmt.Println(err)
	}
}

// options are o on containers.
func options(o harness.Options) harness.Options {
	o.Private = true
	o.Providers = []harness.Provider{tcredis.Containers(tcredis.Options{})}
	return o
}

func startCluster(t *testing.T, o harness.Options) *harness.Cluster {
	t.Helper()
	return harnesstest.Cluster(t, options(o))
}

func startShards(t *testing.T, o harness.Options) *harness.Shards {
	t.Helper()
	return harnesstest.Shards(t, options(o))
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func do(t *testing.T, n *harness.Node, args ...string) any {
	t.Helper()
	reply, err := n.Do(within(t, 5*time.Second), args...)
	must(t, err)
	return reply
}

// newer lists those containers that were not there before. One that was there may go at any time.
func newer(t *testing.T, before map[string]string) map[string]string {
	t.Helper()
	now := containers(t)
	maps.DeleteFunc(now, func(id, _ string) bool { _, there := before[id]; return there })
	return now
}

// containers lists the ids of the harness's containers of this image, by state: those of other images may be another run's.
func containers(t *testing.T) map[string]string {
	t.Helper()
	p, err := testcontainers.NewDockerProvider()
	must(t, err)
	defer p.Close()
	list, err := p.Client().ContainerList(within(t, 10*time.Second), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("label", "io.shardkit.harness.holder").
			Add("ancestor", cmp.Or(os.Getenv("SHARDKIT_IMAGE"), tcredis.DefaultImage)),
	})
	must(t, err)
	all := map[string]string{}
	for _, c := range list.Items {
		all[c.ID] = string(c.State)
	}
	return all
}
