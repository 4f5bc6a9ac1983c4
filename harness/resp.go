package harness

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// A ReplyError is a server's error reply, in the server's words, such as "ERR unknown command" or
// "MOVED 42 127.0.0.1:7000".
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// replyTimeout bounds an exchange whose context has no deadline: a frozen server accepts connections and never answers.
const replyTimeout = 5 * time.Second

// exchange sends the commands on a connection of its own and returns one reply for each, in RESP2's shape: string, int64, nil,
// []any or ReplyError.
//
// A connection per call is the simple way to be right across kills and restarts: no stale one is ever met. Closing with a
// reset leaves no port in TIME_WAIT, so tests may call it many thousand times.
func exchange(ctx context.Context, addr string, secure *tls.Config, password string, commands ...[]string) ([]any, error) {
	ctx, cancel := withTimeoutUnlessSet(ctx, replyTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	if secure != nil {
		secure = secure.Clone()
		secure.ServerName, _, _ = net.SplitHostPort(addr)
		conn = tls.Client(conn, secure) // which greets with the first command
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	skip := 0
	if password != "" {
		commands = append([][]string{{"AUTH", password}}, commands...)
		skip = 1
	}
	replies, err := pipeline(conn, commands)
	if err != nil {
		// The deadline that cut the exchange was ours, set because the context ended: say that instead.
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	if skip > 0 {
		if refused, ok := replies[0].(ReplyError); ok {
			return nil, refused
		}
	}
	return replies[skip:], nil
}

// pipelineChunk bounds how much is sent before replies are read, so that neither side blocks on a full socket.
const pipelineChunk = 256

func pipeline(conn net.Conn, commands [][]string) ([]any, error) {
	w, r := bufio.NewWriter(conn), bufio.NewReader(conn)
	replies := make([]any, 0, len(commands))
	for len(commands) > 0 {
		chunk := commands[:min(len(commands), pipelineChunk)]
		commands = commands[len(chunk):]
		for _, args := range chunk {
			fmt.Fprintf(w, "*%d\r\n", len(args))
			for _, arg := range args {
				fmt.Fprintf(w, "$%d\r\n%s\r\n", len(arg), arg)
			}
		}
		if err := w.Flush(); err != nil {
			return nil, err
		}
		for range chunk {
			reply, err := readReply(r)
			if err != nil {
				return nil, err
			}
			replies = append(replies, reply)
		}
	}
	return replies, nil
}

func readReply(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("not a RESP2 reply: %.80q", line)
	}
	kind, rest := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return ReplyError(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("not a RESP2 reply: %.80q", line)
	}
	switch {
	case kind == ':':
		return n, nil
	case (kind == '$' || kind == '*') && n == -1:
		return nil, nil
	case kind == '$' && n >= 0 && n <= 512<<20:
		buf := make([]byte, n+2)
		if _, err := io.ReadFull(r, buf); err != nil {
			return nil, err
		}
		return string(buf[:n]), nil
	case kind == '*' && n >= 0 && n <= 1<<24:
		items := make([]any, 0, min(n, 1024))
		for range n {
			item, err := readReply(r)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		return items, nil
	}
	return nil, fmt.Errorf("not a RESP2 reply: %.80q", line)
}
