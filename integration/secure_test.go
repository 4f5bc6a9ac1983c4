package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
	"github.com/shardkit/shardkit/replset"
	"github.com/shardkit/shardkit/slotmap"
)

// documentedUsers reads the users that replset's README shows: name to rules.
func documentedUsers(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../replset/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```acl\n")
	block, _, found := strings.Cut(rest, "```")
	users := map[string]string{}
	for line := range strings.Lines(block) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) != 3 || f[0] != "user" {
			t.Fatalf("replset/README.md: the line %q is no user's", line)
		}
		users[f[1]] = f[2]
	}
	if !found || len(users) != 3 {
		t.Fatalf("replset/README.md shows the users %v, want three", users)
	}
	return users
}

// work is all that a user of the README does with a set.
type work struct {
	name string
	do   func(ctx context.Context, s *replset.Set) error
}

var publisherWork = []work{
	{"publish", func(ctx context.Context, s *replset.Set) error { return s.Publish(ctx, []string{"a", "b", "x"}) }},
	{"apply", func(ctx context.Context, s *replset.Set) error {
		return s.Apply(ctx, replset.Delta{Add: []string{"c"}, Remove: []string{"x"}})
	}},
	{"verify", func(ctx context.Context, s *replset.Set) error {
		v, err := s.Verify(ctx, nil)
		if err == nil && len(v.Drifted) > 0 {
			err = fmt.Errorf("%d slots drifted", len(v.Drifted))
		}
		return err
	}},
	{"reconcile", func(ctx context.Context, s *replset.Set) error {
		_, err := s.Reconcile(ctx, []string{"a", "b", "c"})
		return err
	}},
	{"probe", func(ctx context.Context, s *replset.Set) error { _, err := s.Probe(ctx); return err }},
	{"footprint", func(ctx context.Context, s *replset.Set) error {
		many := make([]string, 200) // what is kept in a hash table asks for most
		for i := range many {
			many[i] = fmt.Sprint("member-", i)
		}
		_, err := s.Footprint(ctx, many)
		return err
	}},
	{"intersect into", func(ctx context.Context, s *replset.Set) error {
		n, err := s.IntersectInto(ctx, "subs:{06S}:into", "subs:{06S}")
		return want(n, err, 1)
	}},
	{"intersect scored into", func(ctx context.Context, s *replset.Set) error {
		n, err := s.IntersectScoredInto(ctx, "subs:{06S}:zinto", "subs:{06S}:z")
		return want(n, err, 1)
	}},
	{"clear", func(ctx context.Context, s *replset.Set) error { return s.Clear(ctx) }},
	{"publish numbers", func(ctx context.Context, s *replset.Set) error { return s.Publish(ctx, []string{"1", "2"}) }},
	{"publish again", func(ctx context.Context, s *replset.Set) error { return s.Publish(ctx, []string{"a", "b", "c"}) }},
}

var readerWork = []work{
	{"intersect", func(ctx context.Context, s *replset.Set) error {
		got, err := s.Intersect(ctx, "subs:{06S}")
		return want(fmt.Sprint(got), err, "[a]")
	}},
	{"without", func(ctx context.Context, s *replset.Set) error {
		got, err := s.Without(ctx, "subs:{06S}")
		return want(fmt.Sprint(got), err, "[y]")
	}},
	{"count", func(ctx context.Context, s *replset.Set) error {
		n, err := s.Count(ctx, "subs:{06S}", 0)
		return want(n, err, 1)
	}},
	{"intersect scored", func(ctx context.Context, s *replset.Set) error {
		got, err := s.IntersectScored(ctx, "subs:{06S}:z")
		return want(fmt.Sprint(got), err, "[{a 7}]")
	}},
	{"without scored", func(ctx context.Context, s *replset.Set) error {
		got, err := s.WithoutScored(ctx, "subs:{06S}:z")
		return want(fmt.Sprint(got), err, "[{y 8}]")
	}},
	{"count scored", func(ctx context.Context, s *replset.Set) error {
		n, err := s.CountScored(ctx, "subs:{06S}:z", 0)
		return want(n, err, 1)
	}},
	{"members", func(ctx context.Context, s *replset.Set) error {
		got, err := s.Members(ctx, "subs:{06S}")
		return want(len(got), err, 3)
	}},
	{"contains", func(ctx context.Context, s *replset.Set) error {
		got, err := s.ContainsEach(ctx, "subs:{06S}", "a", "y")
		return want(fmt.Sprint(got), err, "[true false]")
	}},
	{"length", func(ctx context.Context, s *replset.Set) error {
		n, err := s.Len(ctx, "subs:{06S}")
		return want(n, err, 3)
	}},
}

func want[T comparable](got T, err error, want T) error {
	if err == nil && got != want {
		err = fmt.Errorf("got %v, want %v", got, want)
	}
	return err
}

// harmless are refusals that change nothing: what clients say of themselves,
// pings of idle connections, and scripts, which are tried before transactions.
var harmless = regexp.MustCompile(`object (client\|setinfo|ping) |object eval(sha)? username scriptless `)

// With TLS and with users who have just the rights that the README shows, each
// client does all that these users are for. With SHARDKIT_LONG=1: and each of
// those rights is needed.
func TestTLSAndDocumentedUsers(t *testing.T) {
	users := documentedUsers(t)
	c := harnesstest.Cluster(t, harness.Options{Private: true, Replicas: 1, TLS: true, Password: "correct horse", Users: users})
	masters := c.Nodes()[:3]
	long := os.Getenv("SHARDKIT_LONG") == "1"
	newer := c.Version().Name != "redis" || c.Version().AtLeast(8, 0)
	admin := login{password: "correct horse", tls: c.TLS()}
	slots := some(4) // slot 0, which is that of subs:{06S}, among them

	// run does a user's work, and says what failed and what the servers refused.
	run := func(t *testing.T, b replset.Backend, user string, works []work) (failed, refused []string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		tell(t, masters, "ACL", "LOG", "RESET")
		tell(t, masters, "SCRIPT", "FLUSH")
		patience := 5 * time.Second
		if user == "less" { // what is refused is so for good
			patience = 50 * time.Millisecond
		}
		s, err := replset.New(b, "active", &replset.Options{Slots: slots, WaitReplicas: 1, Patience: patience, ReadPatience: patience})
		if err != nil {
			t.Fatal(err)
		}
		// A user without the rights to give back a lease has left it.
		home, err := c.Owner(ctx, int(s.HomeSlot()))
		if err != nil {
			t.Fatal(err)
		}
		tell(t, []*harness.Node{home}, "DEL", slotmap.KeyForSlot("active", s.HomeSlot())+":lease")
		for _, w := range works {
			if err := w.do(ctx, s); err != nil {
				failed = append(failed, fmt.Sprintf("%s: %v", w.name, err))
			}
		}
		for _, n := range masters {
			entries, err := n.Do(ctx, "ACL", "LOG")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries.([]any) {
				text := fmt.Sprint(e)
				if strings.Contains(text, "username "+user+" ") && !harmless.MatchString(text) {
					refused = append(refused, text)
				}
			}
		}
		return failed, refused
	}

	// asked makes slot 0 move and all its keys with it, so that each command there is sent again after ASKING.
	asked := func(do func(ctx context.Context, s *replset.Set) error) work {
		return work{"while a slot moves", func(ctx context.Context, s *replset.Set) (err error) {
			m, err := c.BeginMove(ctx, c.Nodes()[1], 0)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, m.Abort(ctx)) }()
			if _, err := m.MigrateKeys(ctx, 0); err != nil {
				return err
			}
			return do(ctx, s)
		}}
	}
	publishes := append(publisherWork[:len(publisherWork):len(publisherWork)], asked(func(ctx context.Context, s *replset.Set) error {
		return s.Publish(ctx, []string{"a", "b", "c"})
	}))
	reads := append(readerWork[:len(readerWork):len(readerWork)], asked(readerWork[0].do))

	for _, client := range clients { // which leaves what the users find
		t.Run("default/"+client.name, func(t *testing.T) {
			b, err := client.open(t, c.Addrs(), admin)
			if err != nil {
				t.Fatal(err)
			}
			do(t, b, "SADD", "subs:{06S}", "a", "y")
			do(t, b, "ZADD", "subs:{06S}:z", "7", "a", "8", "y")
			if failed, _ := run(t, b, "default", publisherWork); len(failed) > 0 {
				t.Fatalf("as the default user: %q", failed)
			}
		})
	}
	for user, works := range map[string][]work{"publisher": publishes, "scriptless": publishes, "reader": reads} {
		var rights []string
		for _, rule := range strings.Fields(users[user]) {
			if strings.HasPrefix(rule, "+") {
				rights = append(rights, rule)
			}
		}
		needed := map[string]bool{}
		for _, client := range clients {
			t.Run(user+"/"+client.name, func(t *testing.T) {
				as := login{name: user, password: "secret", tls: c.TLS()}
				own, err := client.open(t, c.Addrs(), as)
				if err != nil {
					t.Fatal(err)
				}
				if failed, refused := run(t, own, user, works); len(failed)+len(refused) > 0 {
					t.Errorf("with the documented rights:\nfailed %q\nrefused %q", failed, refused)
				}
				if !long {
					return
				}
				for _, right := range rights {
					if needed[right] {
						continue // the other client has shown it
					}
					as := login{name: "less", password: "secret", tls: c.TLS()}
					rules := strings.Fields(strings.ReplaceAll(users[user]+" ", " "+right+" ", " "))
					tell(t, c.Nodes(), append([]string{"ACL", "SETUSER", as.name, "reset"}, rules...)...)
					less, err := client.open(t, c.Addrs(), as)
					if err != nil {
						needed[right] = true
						continue
					}
					some := works[:len(works)-1]
					if right == "+asking" { // nothing else needs a move to show it
						some = works[len(works)-1:]
					}
					failed, refused := run(t, less, as.name, some)
					if user == "scriptless" {
						refused = slices.DeleteFunc(refused, func(entry string) bool { return strings.Contains(entry, " object eval") })
					}
					if len(failed)+len(refused) > 0 {
						needed[right] = true
					}
				}
			})
		}
		for _, right := range rights {
			// rueidis asks Redis 7.0 for CLUSTER SLOTS.
			if !needed[right] && long && (right != "+cluster|shards" || newer) {
				t.Errorf("the %s works as well without %s", user, right)
			}
		}
	}
}
