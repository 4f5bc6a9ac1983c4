package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardkit/shardkit/slotmap"
)

// server is the flags that say which Redis to talk to.
type server struct {
	Addr []string `help:"Nodes of the cluster: host:port, redis:// or rediss:// URLs, comma-separated; one is enough." placeholder:"HOST:PORT"`
	access
}

// access is the flags that say how to be let in.
type access struct {
	User         string `help:"ACL user. The password comes from $$SHARDKIT_PASSWORD or --password-file."`
	PasswordFile string `help:"File whose first line is the password." placeholder:"FILE"`
	TLS          bool   `name:"tls" help:"Connect with TLS; rediss:// means it too."`
	CA           string `name:"ca" help:"PEM file with the CA that signed the servers' certificates." placeholder:"FILE"`
}

// options turns the flags into a client's options.
func (s server) options() (*redis.ClusterOptions, error) {
	o := &redis.ClusterOptions{
		Username:                   s.User,
		ClusterStateReloadInterval: time.Second,
		DialTimeout:                3 * time.Second,
		ReadTimeout:                3 * time.Second,
		DialerRetries:              1,
	}
	useTLS := s.TLS || s.CA != ""
	for _, addr := range s.Addr {
		if strings.Contains(addr, "://") {
			u, err := redis.ParseURL(addr)
			if err != nil {
				return nil, fmt.Errorf("--addr: %w", err)
			}
			if u.Password != "" {
				return nil, errors.New("--addr: leave the password out of the URL, where other users can read it: put it in $SHARDKIT_PASSWORD or --password-file")
			}
			if u.DB != 0 {
				return nil, fmt.Errorf("--addr: a cluster has no database %d: leave it out of the URL", u.DB)
			}
			if u.Username != "" && o.Username == "" {
				o.Username = u.Username
			}
			useTLS = useTLS || u.TLSConfig != nil
			addr = u.Addr
		}
		host, port, err := net.SplitHostPort(addr)
		if err != nil || host == "" {
			return nil, fmt.Errorf("--addr: %q is not host:port, redis:// or rediss://", addr)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("--addr: %q has no port between 1 and 65535", addr)
		}
		o.Addrs = append(o.Addrs, addr)
	}
	var err error
	if o.Password, err = s.password(); err != nil {
		return nil, err
	}
	if useTLS {
		if o.TLSConfig, err = s.tlsConfig(); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// tlsConfig is what to connect with where TLS is asked for.
func (s access) tlsConfig() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.CA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, fmt.Errorf("--ca: %w", err)
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--ca: %s holds no PEM certificate", s.CA)
	}
	return c, nil
}

func (s access) password() (string, error) {
	if s.PasswordFile == "" {
		return os.Getenv("SHARDKIT_PASSWORD"), nil
	}
	text, err := os.ReadFile(s.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("--password-file: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

// connect returns a client of a cluster that can be worked with: reachable, in
// cluster mode, recent enough, with a master for every slot. Anything else is an
// error that says which.
func (s server) connect(ctx context.Context, change ...func(*redis.ClusterOptions)) (*redis.ClusterClient, error) {
	if len(s.Addr) == 0 {
		return nil, errors.New("--addr is missing: name a node of the cluster, such as --addr 127.0.0.1:7000")
	}
	o, err := s.options()
	if err != nil {
		return nil, err
	}
	for _, f := range change {
		f(o)
	}
	var last error
	for _, addr := range o.Addrs {
		if last = check(ctx, o, addr); last == nil {
			return redis.NewClusterClient(o), nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, last
}

func check(ctx context.Context, o *redis.ClusterOptions, addr string) error {
	node := redis.NewClient(&redis.Options{
		Addr: addr, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, MaxRetries: -1, DialerRetries: 1,
		ContextTimeoutEnabled: true,
	})
	defer node.Close()

	info, err := node.Info(ctx, "server", "cluster").Result()
	if err != nil {
		return explain(addr, err)
	}
	fields := infoFields(info)
	if fields["redis_mode"] != "cluster" && fields["server_mode"] != "cluster" {
		return fmt.Errorf("%s is not in cluster mode: a replicated set needs Redis Cluster (cluster-enabled yes)", addr)
	}
	if major, _ := strconv.Atoi(strings.SplitN(fields["redis_version"], ".", 2)[0]); major < 7 {
		return fmt.Errorf("%s runs Redis %s, which is too old: Redis 7.0 or later, or Valkey, is needed", addr, fields["redis_version"])
	}
	//lint:ignore SA1019 CLUSTER SHARDS lists a failed master's slots like any others
	ranges, err := node.ClusterSlots(ctx).Result()
	if err != nil {
		return explain(addr, err)
	}
	if missing := uncovered(ranges); missing != "" {
		return fmt.Errorf("%s says that no master serves %s: repair the cluster first (redis-cli --cluster fix %s)", addr, missing, addr)
	}
	return nil
}

// explain says what an error on the way to addr means.
func explain(addr string, err error) error {
	text := err.Error()
	var netErr net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case strings.HasPrefix(text, "WRONGPASS"), strings.HasPrefix(text, "ERR invalid password"), strings.HasPrefix(text, "ERR AUTH"):
		return fmt.Errorf("%s refused the password: %w", addr, err)
	case strings.HasPrefix(text, "NOAUTH"):
		return fmt.Errorf("%s asks for a password: put it in $SHARDKIT_PASSWORD or --password-file", addr)
	case strings.HasPrefix(text, "NOPERM"):
		return fmt.Errorf("%s does not let this user in: %w", addr, err)
	case errors.As(err, &netErr) && netErr.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s does not answer: %w", addr, err)
	}
	return fmt.Errorf("cannot reach %s: %w", addr, err)
}

func infoFields(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// uncovered describes the slots that no range has, or is empty.
func uncovered(ranges []redis.ClusterSlot) string {
	var served [slotmap.Slots]bool
	for _, r := range ranges {
		for slot := max(r.Start, 0); slot <= min(r.End, slotmap.Slots-1) && len(r.Nodes) > 0; slot++ {
			served[slot] = true
		}
	}
	var holes []string
	for slot := 0; slot < len(served); slot++ {
		first := slot
		for slot < len(served) && !served[slot] {
			slot++
		}
		switch slot - first {
		case 0:
		case 1:
			holes = append(holes, fmt.Sprintf("slot %d", first))
		default:
			holes = append(holes, fmt.Sprintf("slots %d-%d", first, slot-1))
		}
	}
	if len(holes) > 3 {
		holes = append(holes[:3], fmt.Sprintf("%d more ranges", len(holes)-3))
	}
	return strings.Join(holes, ", ")
}
