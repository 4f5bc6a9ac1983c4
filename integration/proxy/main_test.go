package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/backends/goredis"
	rueidisbackend "github.com/shardkit/shardkit/backends/rueidis"
	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/proxy"
	"github.com/shardkit/shardkit/tiercache"
)

// asProxy makes this binary a proxy over the shards that it names, so that a test
// can send it signals.
const asProxy = "SHARDKIT_TEST_PROXY"

func TestMain(m *testing.M) {
	if addrs := os.Getenv(asProxy); addrs != "" {
		if err := beProxy(strings.Split(addrs, ",")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	logging.Disable() // go-redis prints each connection that is refused
	os.Exit(harnesstest.Main(m))
}

func beProxy(addrs []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	shards, end, err := connect("goredis", addrs)
	if err != nil {
		return err
	}
	defer end()
	p, err := proxy.New(shards, nil)
	if err != nil {
		return err
	}
	defer p.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return p.Serve(ctx, l)
}

// open is a shard at an address, by each client.
var open = map[string]func(addr string) (tiercache.Shard, func(), error){
	"goredis": func(addr string) (tiercache.Shard, func(), error) {
		client := redis.NewClient(&redis.Options{
			Addr: addr, DialTimeout: 500 * time.Millisecond, DialerRetries: 1, ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
		})
		return goredis.NewShard(client), func() { client.Close() }, nil
	},
	"rueidis": func(addr string) (tiercache.Shard, func(), error) {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, ConnWriteTimeout: 500 * time.Millisecond})
		if err != nil {
			return nil, nil, err
		}
		s, err := rueidisbackend.NewShard(client)
		return s, client.Close, err
	},
}

// connect names the shards "shard-1" and so on.
func connect(client string, addrs []string) (shards map[string]tiercache.Shard, end func(), err error) {
	shards = map[string]tiercache.Shard{}
	var ends []func()
	end = func() {
		for _, f := range ends {
			f()
		}
	}
	for i, addr := range addrs {
		s, done, err := open[client](addr)
		if err != nil {
			end()
			return nil, nil, err
		}
		ends = append(ends, done)
		shards[fmt.Sprintf("shard-%d", i+1)] = s
	}
	return shards, end, nil
}

// serve serves a proxy over the servers until the test ends, or stop is called.
func serve(t *testing.T, client string, servers *harness.Shards) (p *proxy.Proxy, addr string, stop func()) {
	t.Helper()
	shards, end, err := connect(client, servers.Addrs())
	if err != nil {
		t.Fatal(err)
	}
	p, err = proxy.New(shards, &proxy.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, l) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		end()
	})
	return p, l.Addr().String(), stop
}

// ask sends one request, and returns the answer's status, 0 for none, and body.
func ask(method, url, body string) (int, string, http.Header) {
	return askBy(http.DefaultClient, method, url, body)
}

func askBy(client *http.Client, method, url, body string) (int, string, http.Header) {
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error(), nil
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := client.Do(r)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return res.StatusCode, string(text), res.Header
}

func within(t *testing.T, d time.Duration, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(d); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not after %v: %s", d, what)
		}
	}
}
