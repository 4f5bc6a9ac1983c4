package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// The counters of RedisInfo, summed over its servers.
const (
	RedisCommands = "redis_commands"  // total_commands_processed
	RedisBytesIn  = "redis_bytes_in"  // total_net_input_bytes
	RedisBytesOut = "redis_bytes_out" // total_net_output_bytes

	// RedisReads is total_reads_processed: how often a server found something to read. A request that arrives at once is
	// one, so it counts round trips, but for requests of more than 16 kB, which take several.
	RedisReads = "redis_reads"
)

// RedisInfo is a CounterSource that asks Redis or Valkey servers for INFO stats, over one plain connection to each. What
// its own commands add to the counters is taken off again.
//
// The servers count everybody: other clients, health checks of the client under test, commands inside scripts (each is
// one more), and what replicas send.
//
// Close it after use. A failed call closes the connections, the next one opens them anew.
type RedisInfo struct {
	// Addrs are host:port pairs: all masters of a cluster, or all shards.
	Addrs []string

	// Username and Password are sent with AUTH if Password is not empty; Username may be left out.
	Username, Password string

	// TLS, if not nil, is used to dial. Its ServerName defaults to the host.
	TLS *tls.Config

	// Timeout of one call. Zero means 2 seconds.
	Timeout time.Duration

	conns map[string]*infoConn
}

var _ CounterSource = (*RedisInfo)(nil)

// Counters sums the counters over all servers. An unreachable one fails the whole call.
func (r *RedisInfo) Counters(ctx context.Context) (map[string]float64, error) {
	if len(r.Addrs) == 0 {
		return nil, errors.New("bench: RedisInfo has no Addrs: give it the servers' host:port pairs")
	}
	timeout := r.Timeout
	if timeout <= 0 {
		timeout = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	sum := infoStats{}
	for _, addr := range r.Addrs {
		c := r.conns[addr]
		if c == nil {
			if r.conns == nil {
				r.conns = map[string]*infoConn{}
			}
			c = &infoConn{}
			r.conns[addr] = c
		}
		s, err := c.stats(ctx, r, addr)
		if err != nil {
			_ = r.Close()
			return nil, fmt.Errorf("bench: INFO from %s: %w", addr, err)
		}
		sum.commands += s.commands
		sum.in += s.in
		sum.out += s.out
		sum.reads += s.reads
	}
	return map[string]float64{
		RedisCommands: float64(sum.commands), RedisBytesIn: float64(sum.in), RedisBytesOut: float64(sum.out), RedisReads: float64(sum.reads),
	}, nil
}

// Close closes the connections.
func (r *RedisInfo) Close() error {
	var errs []error
	for _, c := range r.conns {
		if c.conn != nil {
			errs = append(errs, c.conn.Close())
			c.conn = nil
		}
	}
	return errors.Join(errs...)
}

type infoStats struct{ commands, in, out, reads int64 }

// infoConn remembers what it added to a server's counters, over all its connections.
type infoConn struct {
	conn net.Conn
	rd   *bufio.Reader
	own  infoStats
}

func (c *infoConn) stats(ctx context.Context, r *RedisInfo, addr string) (_ infoStats, err error) {
	fresh := c.conn == nil
	if fresh {
		if err := c.dial(ctx, r.TLS, addr); err != nil {
			return infoStats{}, err
		}
	}
	// A deadline in the past wakes a blocked read when ctx ends.
	conn := c.conn
	unhook := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !unhook() {
			// The deadline would fail the next call.
			_ = conn.Close()
			c.conn = nil
		}
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}()
	if fresh && r.Password != "" {
		auth := []string{"AUTH", r.Password}
		if r.Username != "" {
			auth = []string{"AUTH", r.Username, r.Password}
		}
		if _, err := c.do(auth...); err != nil {
			return infoStats{}, err
		}
	}
	// While it answers INFO a server has counted the request's bytes and its reading, but neither the command nor the answer.
	before := c.own
	text, err := c.do("INFO", "stats")
	if err != nil {
		return infoStats{}, err
	}
	var s infoStats
	fields := map[string]*int64{
		"total_commands_processed": &s.commands, "total_net_input_bytes": &s.in, "total_net_output_bytes": &s.out,
		"total_reads_processed": &s.reads,
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if p := fields[name]; p != nil {
			if *p, err = strconv.ParseInt(value, 10, 64); err != nil {
				return infoStats{}, fmt.Errorf("%s is %q, not a number", name, value)
			}
			delete(fields, name)
		}
	}
	for name := range fields {
		return infoStats{}, fmt.Errorf("INFO stats does not tell %s: is this a Redis or Valkey server?", name)
	}
	s.commands -= before.commands
	s.in -= c.own.in
	s.reads -= c.own.reads
	s.out -= before.out
	return s, nil
}

func (c *infoConn) dial(ctx context.Context, config *tls.Config, addr string) error {
	var conn net.Conn
	var err error
	if config != nil {
		conn, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
	} else {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	}
	if err != nil {
		return err
	}
	c.conn, c.rd = conn, bufio.NewReader(conn)
	return nil
}

// do sends one command and returns its simple or bulk string.
func (c *infoConn) do(args ...string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		return "", err
	}
	c.own.in += int64(b.Len())
	c.own.reads++
	head, err := c.rd.ReadString('\n')
	if err != nil {
		return "", err
	}
	c.own.commands++
	c.own.out += int64(len(head))
	head = strings.TrimSuffix(head, "\r\n")
	if head == "" {
		return "", errors.New("an empty line is no RESP reply")
	}
	switch rest := head[1:]; head[0] {
	case '+':
		return rest, nil
	case '-':
		return "", errors.New(rest)
	case '$':
		const limit = 1 << 20 // INFO stats is about 2 kB
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 || n > limit {
			return "", fmt.Errorf("unexpected bulk length %q", rest)
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(c.rd, body); err != nil {
			return "", err
		}
		c.own.out += int64(len(body))
		return string(body[:n]), nil
	}
	return "", fmt.Errorf("unexpected reply %.40q: is this a Redis or Valkey server?", head)
}
