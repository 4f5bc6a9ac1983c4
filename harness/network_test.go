package harness_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

// A client is a connection such as a user's client has: by way of the proxy, if there is one.
type client struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
}

func dial(t *testing.T, n *harness.Node) *client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", n.Addr(), 2*time.Second)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn, bufio.NewReader(conn)}
}

// ask sends inline commands and returns the next line of the reply within the time-out.
func (c *client) ask(command string, timeout time.Duration) (string, error) {
	if _, err := io.WriteString(c.conn, command+"\r\n"); err != nil {
		return "", err
	}
	return c.line(timeout)
}

func (c *client) line(timeout time.Duration) (string, error) {
	c.conn.SetReadDeadline(time.Now().Add(timeout))
	line, err := c.r.ReadString('\n')
	return strings.TrimSpace(line), err
}

func (c *client) want(command, want string) {
	c.t.Helper()
	if got, err := c.ask(command, 5*time.Second); err != nil || got != want {
		c.t.Errorf("%s: got %q, %v, want %q", command, got, err, want)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	s := startShards(t, harness.Options{Proxied: true})
	n := s.Nodes()[0]
	c := dial(t, n)
	c.want("SET k v", "+OK")
	must(t, n.Cut())
	if _, err := c.line(time.Minute); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after the cut a read ends with %v, want a reset", err)
	}
	if _, err := net.Dial("tcp", n.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while the network is cut a dial ends with %v, want it refused", err)
	}
	if got := do(t, n, "GET", "k"); got != "v" {
		t.Errorf("by its own way the harness gets %v, want v", got)
	}
	dial(t, s.Nodes()[1]).want("PING", "+PONG")
	must(t, n.Cut())
	must(t, n.Mend())
	must(t, n.Mend())
	c = dial(t, n)
	c.want("PING", "+PONG")
	if port := do(t, n, "CONFIG", "GET", "port").([]any)[1].(string); strings.HasSuffix(n.Addr(), ":"+port) {
		t.Errorf("%s is the server itself, want a proxy", n.Addr())
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	n := startShards(t, harness.Options{Shards: 1, Proxied: true}).Nodes()[0]
	old := dial(t, n)
	old.want("PING", "+PONG")
	must(t, n.Stall())
	late := dial(t, n) // connects, as to any network that swallows packets for a while
	for name, c := range map[string]*client{"old": old, "new": late} {
		if got, err := c.ask("PING", 100*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the %s connection gets %q, %v, want silence", name, got, err)
		}
	}
	must(t, n.Mend())
	for name, c := range map[string]*client{"old": old, "new": late} {
		if got, err := c.line(time.Minute); err != nil || got != "+PONG" {
			t.Errorf("afterwards the %s connection gets %q, %v, want what was held back", name, got, err)
		}
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	n := startShards(t, harness.Options{Shards: 1, Proxied: true}).Nodes()[0]
	c := dial(t, n)
	c.want("PING", "+PONG")
	const delay = 40 * time.Millisecond
	must(t, n.Slow(delay))
	start := time.Now()
	c.want("PING", "+PONG")
	if d := time.Since(start); d < 2*delay {
		t.Errorf("a round trip takes %v, want 2 times %v", d, delay)
	}
	// Commands in flight at once are delayed once.
	start = time.Now()
	io.WriteString(c.conn, strings.Repeat("PING\r\n", 500))
	for range 500 {
		if got, err := c.line(time.Minute); err != nil || got != "+PONG" {
			t.Fatalf("got %q, %v, want +PONG", got, err)
		}
	}
	if d := time.Since(start); d > 100*delay { // one by one they take 1000
		t.Errorf("500 commands in flight take %v, want little more than one", d)
	}
	must(t, n.Mend())
	eventually(t, time.Minute, func() string { // a busy machine is slow at times too, but not always
		start := time.Now()
		c.want("PING", "+PONG")
		if d := time.Since(start); d >= 2*delay {
			return fmt.Sprintf("after the repair a round trip takes %v", d)
		}
		return ""
	})
	if err := n.Slow(-1); err == nil {
		t.Error("the network can be slowed by -1ns")
	}
}

func TestSwallow(t *testing.T) {
	t.Parallel()
	n := startShards(t, harness.Options{Shards: 1, Proxied: true}).Nodes()[0]
	c := dial(t, n)
	c.want("SUBSCRIBE news", "*3")
	for range 5 { // the rest of that reply
		c.line(time.Minute)
	}
	var swallowed atomic.Int32
	must(t, n.Swallow(func(message []byte) bool {
		if bytes.Contains(message, []byte("\r\nbad\r\n")) {
			swallowed.Add(1)
			return true
		}
		return false
	}))
	publish := func(messages ...string) {
		var commands [][]string
		for _, m := range messages {
			commands = append(commands, []string{"PUBLISH", "news", m})
		}
		_, err := n.Pipeline(within(t, time.Minute), commands...)
		must(t, err)
	}
	receive := func() string {
		var last string
		for range 7 { // *3 $7 message $4 news $n text
			line, err := c.line(time.Minute)
			must(t, err)
			last = line
		}
		return last
	}
	publish("one", "bad", "two", "bad", "bad", "three")
	for _, want := range []string{"one", "two", "three"} {
		if got := receive(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := swallowed.Load(); got != 3 {
		t.Errorf("%d messages were swallowed, want 3", got)
	}
	must(t, n.Mend())
	publish("bad")
	if got := receive(); got != "bad" {
		t.Errorf("after the repair got %q, want bad", got)
	}
	if err := n.Swallow(nil); err == nil {
		t.Error("nil swallows")
	}
}

// Large values, half-closed clients and dead servers come through a proxy as they would without.
func TestProxyIsTransparent(t *testing.T) {
	t.Parallel()
	n := startShards(t, harness.Options{Shards: 1, Proxied: true}).Nodes()[0]
	c := dial(t, n)
	value := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	go fmt.Fprintf(c.conn, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n%s\r\n", len(value), value)
	if got, err := c.line(10 * time.Second); err != nil || got != "+OK" {
		t.Fatalf("SET: %q, %v", got, err)
	}
	c.want("GET k", fmt.Sprintf("$%d", len(value)))
	if got, err := c.line(10 * time.Second); err != nil || got != value {
		t.Fatalf("GET: %d bytes, %v, want the value", len(got), err)
	}

	io.WriteString(c.conn, "PING\r\nQUIT\r\n")
	c.conn.(*net.TCPConn).CloseWrite()
	rest, err := io.ReadAll(c.r)
	if err != nil || string(rest) != "+PONG\r\n+OK\r\n" {
		t.Errorf("got %q, %v, want both replies and the end", rest, err)
	}

	c = dial(t, n)
	c.want("PING", "+PONG")
	must(t, n.Kill())
	if _, err := c.line(time.Minute); err == nil {
		t.Error("the connection outlives the server")
	}
	if conn, err := net.Dial("tcp", n.Addr()); err == nil {
		conn.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("of a dead server a client sees %v, want its connection to end", err)
		}
		conn.Close()
	}
	must(t, n.Restart(within(t, time.Minute), harness.Empty))
	dial(t, n).want("PING", "+PONG")
}

func TestProxiedCluster(t *testing.T) {
	t.Parallel()
	ctx := within(t, time.Minute)
	c := startCluster(t, harness.Options{Masters: 3, Replicas: 1, Proxied: true})
	a, b := c.Nodes()[0], c.Nodes()[1]
	fill(t, a, tag0, 300)

	// Redirections lead to proxies.
	_, err := b.Do(ctx, "GET", tag0)
	if want := "MOVED 0 " + a.Addr(); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the redirection is %v, want %s", err, want)
	}
	// So do replicas, whose stream is no RESP.
	eventually(t, time.Minute, func() string {
		if got := size(t, c.Nodes()[3]); got != 300 {
			return fmt.Sprintf("the replica has %d keys, want 300", got)
		}
		return ""
	})
	must(t, c.MoveSlots(ctx, b, 0))
	if got := size(t, b); got != 300 {
		t.Errorf("after the move the target has %d keys, want 300", got)
	}
	// The nodes' gossip goes on without clients.
	must(t, a.Cut())
	if owner, err := c.Owner(ctx, 1); err != nil || owner != a {
		t.Errorf("the owner is %v, %v, want %v", owner, err, a)
	}
	must(t, a.Mend())
	must(t, c.WaitReady(ctx))
	must(t, c.Failover(ctx, c.Nodes()[3]))
	must(t, c.WaitReady(ctx))
}

func TestNoProxy(t *testing.T) {
	t.Parallel()
	n := startShards(t, harness.Options{Shards: 1}).Nodes()[0]
	for what, err := range map[string]error{
		"cut": n.Cut(), "stall": n.Stall(), "slow": n.Slow(1), "mend": n.Mend(), "swallow": n.Swallow(func([]byte) bool { return true }),
	} {
		if !errors.Is(err, harness.ErrUnsupported) || !strings.Contains(err.Error(), "Options.Proxied") {
			t.Errorf("%s: %v, want ErrUnsupported and the option that helps", what, err)
		}
	}
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, proxied := range []bool{false, true} {
		b.Run(fmt.Sprintf("proxied=%v", proxied), func(b *testing.B) {
			s, err := harness.StartShards(b.Context(), harness.Options{Shards: 1, Proxied: proxied, Private: true})
			if err != nil {
				b.Skip(err)
			}
			defer s.Close()
			conn, err := net.Dial("tcp", s.Addrs()[0])
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			buf := make([]byte, 16)
			for b.Loop() {
				io.WriteString(conn, "PING\r\n")
				if _, err := conn.Read(buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
