package harness_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

// ask sends inline commands on one connection, over TLS if secure is not nil, and returns the first line of each reply.
func ask(t *testing.T, addr string, secure *tls.Config, commands ...string) ([]string, error) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	if secure != nil {
		secure = secure.Clone()
		secure.ServerName, _, _ = net.SplitHostPort(addr)
		conn = tls.Client(conn, secure)
	}
	r := bufio.NewReader(conn)
	var replies []string
	for _, c := range commands {
		if _, err := io.WriteString(conn, c+"\r\n"); err != nil {
			return replies, err
		}
		line, err := r.ReadString('\n')
		if err != nil {
			return replies, err
		}
		replies = append(replies, strings.TrimSpace(line))
	}
	return replies, nil
}

func TestTLSCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, harness.Options{Masters: 2, Replicas: 1, TLS: true, Proxied: true, Password: "correct horse"})
	ctx := within(t, time.Minute)
	a, b := c.Nodes()[0], c.Nodes()[1]
	do(t, a, "SET", "{06S}", "v") // slot 0
	must(t, c.MoveSlots(ctx, b, 0))
	if got := do(t, b, "GET", "{06S}"); got != "v" {
		t.Errorf("after the move the key is %v, want v", got)
	}
	must(t, c.Failover(ctx, c.Nodes()[3]))
	if got := do(t, c.Nodes()[3], "GET", "{06S}"); got != "v" {
		t.Errorf("after the failover the key is %v, want v", got)
	}

	replies, err := ask(t, a.Addr(), c.TLS(), "AUTH correct\\ horse", `AUTH "correct horse"`, "GET {06S}")
	if err != nil {
		t.Fatal(err)
	}
	// It is told of the port with TLS where the node's clients come in, which is the proxy's.
	if want := "-MOVED 0 " + c.Nodes()[3].Addr(); replies[1] != "+OK" || replies[2] != want {
		t.Errorf("a client with Group.TLS got %q, want OK and %s", replies, want)
	}
	if replies, err := ask(t, a.Addr(), nil, "PING"); err == nil {
		t.Errorf("a client without TLS got %q, want an error", replies)
	}
	var untrusted x509.UnknownAuthorityError
	if _, err := ask(t, a.Addr(), &tls.Config{}, "PING"); !errors.As(err, &untrusted) {
		t.Errorf("a client that does not trust the authority got %v, want x509.UnknownAuthorityError", err)
	}
}

func TestTLSFaults(t *testing.T) {
	t.Parallel()
	s := startShards(t, harness.Options{Shards: 1, TLS: true, Proxied: true})
	n, ctx := s.Nodes()[0], within(t, time.Minute)
	do(t, n, "SET", "k", "v")
	must(t, n.Save(ctx))
	must(t, n.Kill())
	must(t, n.Restart(ctx, harness.WithData))
	if got := do(t, n, "GET", "k"); got != "v" {
		t.Errorf("after a restart the key is %v, want v", got)
	}
	const delay = 50 * time.Millisecond
	must(t, n.Slow(delay))
	start := time.Now()
	if _, err := ask(t, n.Addr(), s.TLS(), "PING"); err != nil {
		t.Error(err)
	}
	// Two round trips: the handshake of TLS 1.3, and the command's own.
	if took := time.Since(start); took < 4*delay {
		t.Errorf("a slow network took %v, want %v at least", took, 4*delay)
	}
	must(t, n.Mend())
	if err := n.Swallow(func([]byte) bool { return true }); !errors.Is(err, harness.ErrUnsupported) {
		t.Errorf("Swallow: %v, want ErrUnsupported", err)
	}
	must(t, n.Cut())
	if replies, err := ask(t, n.Addr(), s.TLS(), "PING"); err == nil {
		t.Errorf("through a cut network came %q", replies)
	}
	must(t, n.Freeze())
	if got := n.State(ctx); got != harness.Frozen {
		t.Errorf("State() = %v, want frozen", got)
	}
	must(t, n.Thaw())
	if other := startShards(t, harness.Options{Shards: 1}); other.TLS() != nil {
		t.Error("servers without TLS have a configuration for it")
	}
}

// Two groups do not trust each other: each has an authority of its own.
func TestTLSAuthorityIsOfOneGroup(t *testing.T) {
	t.Parallel()
	a := startShards(t, harness.Options{Shards: 1, TLS: true})
	b := startShards(t, harness.Options{Shards: 1, TLS: true})
	if _, err := ask(t, b.Addrs()[0], a.TLS(), "PING"); err == nil {
		t.Error("a client of one group reached the other")
	}
}

func TestServerWithoutTLS(t *testing.T) {
	// What a server that was built without TLS says to the flag.
	server := script(t, `#!/bin/sh
case "$*" in *--version*) echo 'Redis server v=7.0.15 sha=0'; exit;; esac
cat >&2 <<'END'

*** FATAL CONFIG FILE ERROR (Redis 7.0.15) ***
Reading the configuration file, at line 3
>>> 'tls-port "12345"'
Bad directive or wrong number of arguments
END
exit 1
`)
	_, err := harness.StartCluster(context.Background(), harness.Options{Server: server, Private: true, TLS: true})
	if !errors.Is(err, harness.ErrUnsupported) || !strings.Contains(fmt.Sprint(err), "without TLS") {
		t.Errorf("the error is %v, want ErrUnsupported, and why", err)
	}
}
