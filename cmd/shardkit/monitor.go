package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// watch runs f and returns the first command of the given name that the node
// received meanwhile, as the server's MONITOR shows it.
func watch(ctx context.Context, node *redis.Options, command string, f func() error) (string, error) {
	conn, lines, err := monitor(ctx, node)
	if err != nil {
		return "", fmt.Errorf("demo: MONITOR on %s: %w", node.Addr, err)
	}
	defer conn.Close()
	if err := f(); err != nil {
		return "", err
	}
	for lines.Scan() {
		if words := monitored(lines.Text()); len(words) > 0 && strings.EqualFold(words[0], command) {
			return strings.Join(words, " "), nil
		}
	}
	return "", fmt.Errorf("demo: MONITOR on %s did not show %s", node.Addr, command)
}

// monitor opens a connection that has answered OK to MONITOR: from then on it
// receives every command as a line.
func monitor(ctx context.Context, node *redis.Options) (net.Conn, *bufio.Scanner, error) {
	conn, err := node.Dialer(ctx, "tcp", node.Addr)
	if err != nil {
		return nil, nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	lines := bufio.NewScanner(conn)
	if node.Password != "" {
		user := node.Username
		if user == "" {
			user = "default"
		}
		err = exchange(conn, lines, "AUTH", user, node.Password)
	}
	if err == nil {
		err = exchange(conn, lines, "MONITOR")
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, lines, nil
}

// exchange sends a command and waits for its OK.
func exchange(conn net.Conn, lines *bufio.Scanner, command ...string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := conn.Write([]byte(b.String())); err != nil {
		return err
	}
	lines.Scan()
	if reply := lines.Text(); reply != "+OK" {
		return fmt.Errorf("%s: %q", command[0], reply)
	}
	return nil
}

// monitored splits a line of MONITOR, such as
//
//	+1700000000.123456 [0 127.0.0.1:5000] "SINTER" "subs:{42}" "active:{42}"
//
// into the command's words.
func monitored(line string) []string {
	_, rest, ok := strings.Cut(line, "] ")
	if !ok {
		return nil
	}
	var words []string
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return nil
		}
		words = append(words, word)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	return words
}
