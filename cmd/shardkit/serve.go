package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/proxy"
	"github.com/shardkit/shardkit/tiercache"
)

type serveCmd struct {
	Listen string  `help:"Where to listen." default:"127.0.0.1:7000" env:"SHARDKIT_LISTEN" placeholder:"HOST:PORT"`
	Shards []shard `help:"Redis servers, as NAME=HOST:PORT; without a name the address is the name. None: three shards in this process, which keep nothing." env:"SHARDKIT_SHARDS" placeholder:"NAME=HOST:PORT"`
	access
	Client      string          `help:"Client that talks to them: goredis or rueidis." enum:"goredis,rueidis" default:"goredis" env:"SHARDKIT_CLIENT"`
	Namespace   string          `help:"Beginning of every key on the shards; programs with the same one share the cache." default:"tc" env:"SHARDKIT_NAMESPACE"`
	TTL         time.Duration   `name:"ttl" help:"Life of values whose PUT gives none." default:"5m" env:"SHARDKIT_TTL"`
	LocalBytes  int64           `help:"What this process holds itself; -1 for nothing." default:"67108864" env:"SHARDKIT_LOCAL_BYTES" placeholder:"BYTES"`
	MaxBody     int64           `help:"Largest body of a request." default:"1048576" env:"SHARDKIT_MAX_BODY" placeholder:"BYTES"`
	MaxInFlight int             `help:"Requests under way at one time; more are refused." default:"1024" env:"SHARDKIT_MAX_IN_FLIGHT" placeholder:"N"`
	TokenFile   string          `help:"File whose first line every request must bring as a bearer token; or $$SHARDKIT_TOKEN." placeholder:"FILE"`
	Verbose     bool            `help:"Log each request."`
	Config      kong.ConfigFlag `help:"JSON file with these flags, such as {\"shards\": [\"a=10.0.0.1:6379\"]}. The command line and the environment win." placeholder:"FILE"`
}

func (serveCmd) Help() string {
	return `A shard keeps its keys as long as it keeps its name, whatever its address.

Examples:
  shardkit serve
  shardkit serve --shards a=10.0.0.1:6379,b=10.0.0.2:6379 --listen :7000
  curl -X PUT localhost:7000/cache/session:abc -H "Content-Type: application/json" -d '{"value": {"userId": 42}, "ttlSeconds": 600}'
  curl localhost:7000/cache/session:abc`
}

// shard is a server as the command line names it: NAME=HOST:PORT, NAME:HOST:PORT or
// HOST:PORT.
type shard struct{ name, addr string }

func (s *shard) UnmarshalText(text []byte) error {
	given := strings.TrimSpace(string(text))
	name, addr, ok := strings.Cut(given, "=")
	if !ok {
		name, addr = given, given
		if host, _, err := net.SplitHostPort(given); err != nil || host == "" {
			name, addr, _ = strings.Cut(given, ":")
		}
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || name == "" || host == "" || port == "" {
		return fmt.Errorf("%q is not NAME=HOST:PORT, such as a=127.0.0.1:6379", given)
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "0" {
		return fmt.Errorf("%q has no port between 1 and 65535", given)
	}
	*s = shard{name, addr}
	return nil
}

func (c serveCmd) Run(ctx context.Context, con console) (err error) {
	token, err := c.token()
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if c.Verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(con.err, &slog.HandlerOptions{Level: level}))
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer l.Close()
	shards, end, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	p, err := proxy.New(shards, &proxy.Options{
		Cache:   tiercache.Options{Namespace: c.Namespace, TTL: c.TTL, LocalBytes: c.LocalBytes},
		MaxBody: c.MaxBody, MaxInFlight: c.MaxInFlight, Token: token, Log: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if len(c.Shards) == 0 {
		fmt.Fprintf(con.err, "no --shards: three shards in this process, of %d MiB at most, which keep nothing when it ends\n", proxy.EmbeddedBytes>>20)
	}
	fmt.Fprintf(con.out, "serving on http://%s\n", l.Addr())
	return p.Serve(ctx, l)
}

func (c serveCmd) token() (string, error) {
	if c.TokenFile == "" {
		return os.Getenv("SHARDKIT_TOKEN"), nil
	}
	text, err := os.ReadFile(c.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", fmt.Errorf("--token-file: the first line of %s is empty", c.TokenFile)
	}
	return line, nil
}

// connect returns the shards, and how to be done with them. With go-redis a server
// that is down when the proxy starts may come later.
func (c serveCmd) connect(ctx context.Context) (map[string]tiercache.Shard, func() error, error) {
	if len(c.Shards) == 0 {
		return proxy.Embedded(ctx, 3), func() error { return nil }, nil
	}
	options := redis.Options{
		Username: c.User, DialTimeout: 500 * time.Millisecond, DialerRetries: 1,
		ReadTimeout: 500 * time.Millisecond, WriteTimeout: 500 * time.Millisecond,
	}
	var err error
	if options.Password, err = c.password(); err != nil {
		return nil, nil, err
	}
	if c.TLS || c.CA != "" {
		if options.TLSConfig, err = c.tlsConfig(); err != nil {
			return nil, nil, err
		}
	}
	shards := make(map[string]tiercache.Shard, len(c.Shards))
	var ends []func() error
	end := func() (err error) {
		for _, f := range ends {
			err = errors.Join(err, f())
		}
		return err
	}
	for _, s := range c.Shards {
		if shards[s.name] != nil {
			return nil, nil, errors.Join(fmt.Errorf("--shards: %s is named twice", s.name), end())
		}
		o := options
		o.Addr = s.addr
		opened, done, err := openShard(c.Client, o)
		if err != nil {
			return nil, nil, errors.Join(explain(s.addr, err), end())
		}
		ends = append(ends, done)
		shards[s.name] = opened
	}
	return shards, end, nil
}
