package bench

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeServer counts as Redis does: a request's bytes when they are read, its command and its answer afterwards.
type fakeServer struct {
	net.Listener
	password string
	answer   func() string // in place of the real answer to INFO, if not nil

	mu                       sync.Mutex
	commands, in, out, reads int64
	conns                    []net.Conn
	wg                       sync.WaitGroup
}

func startFake(t *testing.T, config *tls.Config, password string, answer func() string) *fakeServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config != nil {
		ln = tls.NewListener(ln, config)
	}
	f := &fakeServer{Listener: ln, password: password, answer: answer, commands: 1000, in: 50_000, out: 70_000}
	f.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			f.mu.Lock()
			f.conns = append(f.conns, c)
			f.mu.Unlock()
			f.wg.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		f.mu.Lock()
		for _, c := range f.conns {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.wg.Wait()
	})
	return f
}

func (f *fakeServer) serve(c net.Conn) {
	authorised := f.password == ""
	for rd := bufio.NewReader(c); ; {
		args, n, err := readCommand(rd)
		if err != nil {
			return
		}
		f.mu.Lock()
		f.in += int64(n)
		f.reads++
		reply := "-ERR unknown command\r\n"
		switch {
		case args[0] == "AUTH":
			if authorised = args[len(args)-1] == f.password; authorised {
				reply = "+OK\r\n"
			} else {
				reply = "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
			}
		case !authorised:
			reply = "-NOAUTH Authentication required.\r\n"
		case args[0] == "INFO" && f.answer != nil:
			reply = f.answer()
		case args[0] == "INFO":
			info := fmt.Sprintf("# Stats\r\ntotal_connections_received:7\r\ntotal_commands_processed:%d\r\ntotal_net_input_bytes:%d\r\ntotal_net_output_bytes:%d\r\ntotal_reads_processed:%d\r\n",
				f.commands, f.in, f.out, f.reads)
			reply = fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
		}
		f.commands++
		f.out += int64(len(reply))
		f.mu.Unlock()
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

func readCommand(rd *bufio.Reader) (args []string, n int, err error) {
	line := func() int {
		s, e := rd.ReadString('\n')
		n += len(s)
		if e != nil {
			err = e
			return 0
		}
		v, _ := strconv.Atoi(strings.Trim(s, "*$\r\n"))
		return v
	}
	for range line() {
		b := make([]byte, line()+2)
		if err == nil {
			_, err = io.ReadFull(rd, b)
		}
		n += len(b)
		args = append(args, strings.TrimSuffix(string(b), "\r\n"))
	}
	return args, n, err
}

// What others did to the server is seen to the byte, and RedisInfo's own doings never.
func TestRedisInfoSubtractsItself(t *testing.T) {
	a, b := startFake(t, nil, "", nil), startFake(t, nil, "secret", nil)
	for name, src := range map[string]*RedisInfo{
		"one":   {Addrs: []string{a.Addr().String()}},
		"login": {Addrs: []string{b.Addr().String()}, Password: "secret"},
		"user":  {Addrs: []string{b.Addr().String()}, Username: "default", Password: "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			defer src.Close()
			f := a
			if src.Password != "" {
				f = b
			}
			f.mu.Lock()
			f.commands, f.in, f.out, f.reads = 1000, 50_000, 70_000, 300
			f.mu.Unlock()
			for i := range 5 {
				got, err := src.Counters(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				more := float64(i)
				if got[RedisCommands] != 1000+more || got[RedisBytesIn] != 50_000+10*more || got[RedisBytesOut] != 70_000+20*more || got[RedisReads] != 300+2*more {
					t.Errorf("call %d: got %v, want 1000, 50000, 70000, 300 and what others added", i, got)
				}
				f.mu.Lock()
				f.commands, f.in, f.out, f.reads = f.commands+1, f.in+10, f.out+20, f.reads+2
				f.mu.Unlock()
				if i == 2 {
					// A new connection must not forget what the old one added.
					if err := src.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

func TestRedisInfoSumsServersOverTLS(t *testing.T) {
	web := httptest.NewUnstartedServer(nil)
	web.StartTLS()
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	config := &tls.Config{Certificates: web.TLS.Certificates}
	a, b := startFake(t, config, "", nil), startFake(t, config, "", nil)
	src := &RedisInfo{Addrs: []string{a.Addr().String(), b.Addr().String()}, TLS: &tls.Config{RootCAs: roots}}
	defer src.Close()
	for range 3 {
		got, err := src.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got[RedisCommands] != 2000 || got[RedisBytesIn] != 100_000 || got[RedisBytesOut] != 140_000 {
			t.Errorf("got %v, want the sum of two servers", got)
		}
	}
	plain := &RedisInfo{Addrs: src.Addrs, TLS: &tls.Config{}}
	defer plain.Close()
	if _, err := plain.Counters(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "bench: INFO from 127.0.0.1:") {
		t.Errorf("an unknown certificate: got %v, want an error", err)
	}
}

func TestRedisInfoErrors(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	if _, err := (&RedisInfo{}).Counters(t.Context()); err == nil || !strings.Contains(err.Error(), "has no Addrs") {
		t.Errorf("no addresses: got %v", err)
	}
	src := &RedisInfo{Addrs: []string{closed.Addr().String()}}
	if _, err := src.Counters(t.Context()); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody there: got %v", err)
	}

	for reply, want := range map[string]string{
		"-NOPERM this user has no permissions\r\n": "NOPERM this user",
		"$-1\r\n":                      "unexpected bulk length",
		"$99999999999\r\n":             "unexpected bulk length",
		"$9\r\n# Stats\r\n\r\n":        "INFO stats does not tell total_",
		"\r\n":                         "no RESP reply",
		"HTTP/1.1 400 Bad Request\r\n": "is this a Redis or Valkey server?",
		"$29\r\ntotal_commands_processed:-x\r\n\r\n\r\n\r\n": "not a number",
	} {
		f := startFake(t, nil, "", func() string { return reply })
		src := &RedisInfo{Addrs: []string{f.Addr().String()}}
		if _, err := src.Counters(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("reply %q: got error %v, want %q in it", reply, err, want)
		}
		_ = src.Close()
	}

	f := startFake(t, nil, "secret", nil)
	for _, src := range []*RedisInfo{{Password: "wrong"}, {}} {
		src.Addrs = []string{f.Addr().String()}
		if _, err := src.Counters(t.Context()); err == nil || !strings.Contains(err.Error(), "WRONGPASS") && !strings.Contains(err.Error(), "NOAUTH") {
			t.Errorf("password %q: got %v", src.Password, err)
		}
		_ = src.Close()
	}
}

func TestRedisInfoDoesNotHang(t *testing.T) {
	f := startFake(t, nil, "", func() string { return "" })
	src := &RedisInfo{Addrs: []string{f.Addr().String()}, Timeout: 50 * time.Millisecond}
	defer src.Close()
	if _, err := src.Counters(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("silent server: got %v, want DeadlineExceeded", err)
	}
	src.Timeout = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := src.Counters(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want Canceled", err)
	}
	f.mu.Lock()
	f.answer = nil
	f.mu.Unlock()
	if _, err := src.Counters(t.Context()); err != nil {
		t.Errorf("after that: %v", err)
	}
}
