package tcredis_test

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

func TestClusterFaults(t *testing.T) {
	t.Parallel()
	c := startCluster(t, harness.Options{Replicas: 1})
	t.Log(c.Provider())
	if !strings.HasPrefix(c.Provider(), "container: "+c.Version().String()+" (") {
		t.Errorf("Provider() = %q, want container: %v (image)", c.Provider(), c.Version())
	}
	ctx := within(t, 60*time.Second)
	nodes := c.Nodes()
	do(t, nodes[0], "SET", "{06S}", "v") // slot 0
	must(t, c.MoveSlots(ctx, nodes[1], 0))
	if got := do(t, nodes[1], "GET", "{06S}"); got != "v" {
		t.Errorf("after the move the key is %v, want v", got)
	}

	must(t, nodes[1].Kill())
	if got := nodes[1].State(ctx); got != harness.Dead {
		t.Errorf("after Kill the node is %v, want dead", got)
	}
	must(t, c.WaitReady(ctx))
	if got := do(t, nodes[4], "GET", "{06S}"); got != "v" {
		t.Errorf("on the promoted replica the key is %v, want v", got)
	}
	must(t, nodes[1].Restart(ctx, harness.Empty))
	must(t, c.WaitReady(ctx))
	if replicas, err := c.Replicas(ctx, nodes[4]); err != nil || len(replicas) != 1 || replicas[0] != nodes[1] {
		t.Errorf("Replicas() = %v, %v, want the restarted node", replicas, err)
	}

	must(t, nodes[2].Freeze())
	if got := nodes[2].State(ctx); got != harness.Frozen {
		t.Errorf("after Freeze the node is %v, want frozen", got)
	}
	must(t, c.WaitReady(ctx))
	must(t, nodes[2].Thaw())
	must(t, c.WaitReady(ctx))
	if owner, err := c.Owner(ctx, harness.Slots-1); err != nil || owner != nodes[5] {
		t.Errorf("Owner() = %v, %v, want %v", owner, err, nodes[5])
	}
	must(t, nodes[0].Freeze())
	must(t, nodes[0].Kill()) // a frozen one dies too
	must(t, c.WaitReady(ctx))
}

func TestShardsKeepData(t *testing.T) {
	t.Parallel()
	for name, persist := range map[string]bool{"append-only file": true, "snapshot": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startShards(t, harness.Options{Shards: 2, Persist: persist})
			n, ctx := s.Nodes()[0], within(t, 30*time.Second)
			if !persist {
				if err := n.Restart(ctx, harness.WithData); !errors.Is(err, harness.ErrUnsupported) {
					t.Errorf("restart without any data kept: %v, want ErrUnsupported", err)
				}
			}
			do(t, n, "SET", "k", "v")
			if !persist {
				must(t, n.Save(ctx))
				do(t, n, "SET", "k", "newer")
			}
			must(t, n.Restart(ctx, harness.WithData))
			if got := do(t, n, "GET", "k"); got != "v" {
				t.Errorf("after a restart with data the key is %v, want v", got)
			}
			must(t, n.Restart(ctx, harness.Empty))
			if got := do(t, n, "DBSIZE"); got != int64(0) {
				t.Errorf("after an empty restart there are %v keys", got)
			}
		})
	}
}

func TestTLSAndUsers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, harness.Options{Replicas: 1, TLS: true, Password: "correct horse", Users: map[string]string{"u": "on >secret +ping"}})
	n, ctx := c.Nodes()[0], within(t, 30*time.Second)
	must(t, n.Kill())
	must(t, c.WaitReady(ctx))
	must(t, n.Restart(ctx, harness.Empty)) // its certificate is there again
	must(t, c.WaitReady(ctx))
	conn, err := tls.Dial("tcp", n.Addr(), c.TLS())
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(5*time.Second)))
	_, err = conn.Write([]byte("AUTH u secret\r\nPING\r\nGET k\r\n"))
	must(t, err)
	var got string
	for buf := make([]byte, 512); strings.Count(got, "\n") < 3; {
		k, err := conn.Read(buf)
		must(t, err)
		got += string(buf[:k])
	}
	if !strings.HasPrefix(got, "+OK\r\n+PONG\r\n-NOPERM") {
		t.Errorf("got %q, want OK, PONG and NOPERM", got)
	}
}

func TestNetworkFaults(t *testing.T) {
	t.Parallel()
	s := startShards(t, harness.Options{Shards: 1, Proxied: true})
	n := s.Nodes()[0]
	must(t, n.Cut())
	if conn, err := net.DialTimeout("tcp", n.Addr(), 5*time.Second); err == nil {
		conn.Close()
		t.Error("a cut node accepts connections")
	}
	must(t, n.Mend())
	conn, err := net.DialTimeout("tcp", n.Addr(), 5*time.Second)
	must(t, err)
	conn.Close()
}

func TestBadFlag(t *testing.T) {
	t.Parallel()
	_, err := harness.StartShards(within(t, 30*time.Second), options(harness.Options{Shards: 1, Args: []string{"--no-such-flag", "1"}}))
	for _, want := range []string{"shard-1", "exit status 1", "no-such-flag"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q in it", err, want)
		}
	}
}
