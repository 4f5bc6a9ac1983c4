package harness_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	s := startShards(t, harness.Options{
		Shards:   1,
		Password: "correct horse",
		Users: map[string]string{
			"reader": "on >secret ~cache:* +@read +ping",
			"gone":   "off >secret",
		},
	})
	n, ctx := s.Nodes()[0], within(t, time.Minute)
	for i, restart := range []string{"", "empty"} {
		if restart != "" {
			must(t, n.Restart(ctx, harness.Empty))
		}
		replies, err := ask(t, n.Addr(), nil, "GET cache:a", "AUTH gone secret", "AUTH reader secret", "PING", "GET cache:a", "GET other", "SET cache:a 1")
		must(t, err)
		for j, want := range []string{"-NOAUTH", "-WRONGPASS", "+OK", "+PONG", "$-1", "-NOPERM", "-NOPERM"} {
			if !strings.HasPrefix(replies[j], want) {
				t.Errorf("start %d: reply %d is %q, want %s", i+1, j+1, replies[j], want)
			}
		}
	}
}

func TestUsersWithoutPassword(t *testing.T) {
	t.Parallel()
	s := startShards(t, harness.Options{Shards: 1, Users: map[string]string{"u": "on nopass ~* +@all"}})
	if got := do(t, s.Nodes()[0], "ACL", "WHOAMI"); got != "default" {
		t.Errorf("the harness works as %v, want default", got)
	}
}

func TestUsersAreChecked(t *testing.T) {
	t.Parallel()
	for name, users := range map[string]map[string]string{
		"the default user":   {"default": "on"},
		"no name":            {"": "on"},
		"a name of two":      {"a b": "on"},
		"rules of two lines": {"a": "on\nuser b on"},
	} {
		_, err := harness.StartShards(context.Background(), harness.Options{Users: users})
		if err == nil || !strings.Contains(err.Error(), "Options.Users") {
			t.Errorf("%s: the error is %v, want one about Options.Users", name, err)
		}
	}
	for _, o := range []harness.Options{{TLS: true}, {Users: map[string]string{"a": "on"}}} {
		o.Addrs = []string{"127.0.0.1:1"}
		if _, err := harness.StartShards(context.Background(), o); !errors.Is(err, harness.ErrUnsupported) {
			t.Errorf("servers that run already: the error is %v, want ErrUnsupported", err)
		}
	}
}
