package proxy_test

import (
	"bufio"
	"net"
	"strings"
	"testing"
	"time"
)

// conn is a connection on which a test speaks HTTP by itself.
type conn struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func dial(t testing.TB, s *site) *conn { return dialAddr(t, strings.TrimPrefix(s.URL, "http://")) }

func dialAddr(t testing.TB, addr string) *conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &conn{t, c, bufio.NewReader(c)}
}

// send ignores errors: the server may have closed, and then line tells why.
func (c *conn) send(text string) { _, _ = c.Write([]byte(text)) }

func (c *conn) line() string {
	c.t.Helper()
	line, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Errorf("after %q: %v", line, err)
	}
	return line
}
