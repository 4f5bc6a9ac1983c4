package rueidisbackend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"

	"github.com/shardkit/shardkit/harness"
	"github.com/shardkit/shardkit/harness/harnesstest"
)

func TestNewRefusesWhatIsNoCluster(t *testing.T) {
	if _, err := New(nil); err == nil || !strings.HasPrefix(err.Error(), "rueidisbackend: New: ") {
		t.Errorf("nil: got %v", err)
	}
	s := harnesstest.Shards(t, harness.Options{Shards: 1, Private: true})
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: s.Addrs()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := New(client); err == nil || !strings.Contains(err.Error(), "standalone") || !strings.Contains(err.Error(), "cluster-enabled") {
		t.Errorf("one server: got %v", err)
	}
}

// rueidis panics when a command with keys of two slots is built.
func TestKeysOfTwoSlotsAreAnError(t *testing.T) {
	b := connect(t, sharedCluster(t))
	for _, w := range ways {
		for _, cmd := range [][]string{{"SINTER", "{a}1", "{b}1"}, {"MSET", "{a}1", "x", "{b}1", "x"}} {
			if _, err := w.run(t.Context(), b, "{a}1", cmd...); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT ") {
				t.Errorf("%s: %q: got %v", w.name, cmd, err)
			}
		}
	}
	_, err := b.Tx(t.Context(), "{a}1", [][]string{{"SET", "{a}1", "x"}, {"SET", "{b}1", "x"}})
	if err == nil {
		t.Error("Tx over two slots succeeded")
	}
	for _, key := range []string{"{a}1", "{b}1"} {
		if v, err := b.Do(t.Context(), key, []string{"GET", key}); v != nil || err != nil {
			t.Errorf("%s was written: %v, %v", key, v, err)
		}
	}
}

// Commands that would change the connection for everybody, or bring down
// rueidis, are refused in an element of their own.
func TestConnectionCommandsAreRefused(t *testing.T) {
	b := connect(t, sharedCluster(t))
	for _, cmd := range [][]string{
		nil, {}, {""}, {"", "x"},
		{"SUBSCRIBE", "x"}, {"psubscribe", "x"}, {"SSUBSCRIBE", "x"}, {"UNSUBSCRIBE"},
		{"MONITOR"}, {"SYNC"}, {"PSYNC", "?", "-1"}, {"client", "reply", "off"}, {"REPLCONF", "ACK", "0"},
		{"SCRIPT", "DEBUG", "YES"}, {"CLIENT", "TRACKING", "OFF"}, {"CLIENT", "CACHING", "YES"},
		{"MULTI"}, {"exec"}, {"DISCARD"}, {"WATCH", "x"}, {"UNWATCH"}, {"ASKING"},
		{"READONLY"}, {"READWRITE"}, {"HELLO", "2"}, {"AUTH", "x"}, {"RESET"}, {"QUIT"},
	} {
		for _, w := range ways {
			if _, err := w.run(t.Context(), b, "x", cmd...); err == nil || !strings.HasPrefix(err.Error(), "rueidisbackend: ") {
				t.Errorf("%s: %q: got %v", w.name, cmd, err)
			}
		}
		list := b.Pipeline(t.Context(), []string{"x", "x", "x"}, [][]string{{"ECHO", "1"}, cmd, {"ECHO", "2"}})
		if _, failed := list[1].(error); !failed || list[0] != "1" || list[2] != "2" {
			t.Errorf("%q between others: got %v", cmd, list)
		}
	}
	for _, cmd := range [][]string{{"CLIENT", "GETNAME"}, {"CLIENT"}, {"client", "id"}, {"SCRIPT", "EXISTS", "x"}} {
		if _, err := b.Do(t.Context(), "x", cmd); err != nil && strings.HasPrefix(err.Error(), "rueidisbackend: ") {
			t.Errorf("%q: got %v", cmd, err)
		}
	}
}

func TestBlocking(t *testing.T) {
	for cmd, want := range map[string]bool{
		"BLPOP k 0": true, "bzmpop 0 1 k MIN": true, "GET k": false, "WAIT 1 0": false,
		"XREAD STREAMS k 0": false, "XREAD BLOCK 0 STREAMS k 0": true, "xread count 1 block 0 streams k 0": true,
		"XREAD STREAMS BLOCK 0": false, "XREADGROUP GROUP g c BLOCK 0 STREAMS k >": true,
	} {
		if got := blocking(strings.Fields(cmd)); got != want {
			t.Errorf("%q: got %v", cmd, got)
		}
	}
}

// A command that waits has a connection of its own: nobody waits with it.
func TestBlockingCommandHoldsUpNobody(t *testing.T) {
	b := connect(t, sharedCluster(t))
	const list, other = "{block}list", "{block}other"
	var waiting sync.WaitGroup
	waiting.Go(func() {
		v, err := b.Do(t.Context(), list, []string{"BLPOP", list, "10"})
		if err != nil || fmt.Sprint(v) != "["+list+" element]" {
			t.Errorf("BLPOP: got %v, %v", v, err)
		}
	})
	node, _ := masters(t, sharedCluster(t), b.slotOf(list))
	eventually(t, "BLPOP waits", func() bool {
		return strings.Contains(tell(t, node, "INFO", "clients").(string), "blocked_clients:1")
	})
	for _, w := range ways {
		if v, err := w.run(t.Context(), b, other, "GET", other); v != nil || err != nil {
			t.Errorf("%s beside BLPOP: got %v, %v", w.name, v, err)
		}
	}
	if _, err := b.Do(t.Context(), list, []string{"RPUSH", list, "element"}); err != nil {
		t.Error(err)
	}
	waiting.Wait()
}

func TestPipelineNeedsAKeyForEachCommand(t *testing.T) {
	b := connect(t, sharedCluster(t))
	for _, keys := range [][]string{nil, {"a"}, {"a", "b", "c"}} {
		for i, v := range b.Pipeline(t.Context(), keys, [][]string{{"PING"}, {"PING"}}) {
			if err, _ := v.(error); err == nil || !strings.HasPrefix(err.Error(), "rueidisbackend: Pipeline: ") {
				t.Errorf("%d keys: element %d: got %v", len(keys), i, v)
			}
		}
	}
}

// A client that its owner has closed gives errors, to those who are waiting too.
func TestClosedClient(t *testing.T) {
	c := sharedCluster(t)
	node, _ := masters(t, c, 0)
	for _, warmed := range []bool{true, false} {
		b := connect(t, c)
		if warmed {
			warm(t, b)
		}
		// A connection that rueidis is still dialling at Close outlives it.
		for _, n := range b.client.Nodes() {
			if err := n.Do(t.Context(), n.B().Ping().Build()).Error(); err != nil {
				t.Fatal(err)
			}
		}
		b.client.Close()
		for _, w := range ways {
			var err error
			eventually(t, "Close has ended the connections", func() bool {
				_, err = w.run(t.Context(), b, "x", "GET", "x")
				return err != nil
			})
			if !strings.HasPrefix(err.Error(), "rueidisbackend: ") || !errors.Is(err, rueidis.ErrClosing) {
				t.Errorf("%s, warmed=%v: got %v", w.name, warmed, err)
			}
		}
	}

	b := connect(t, c)
	key := keyIn(b, 0, "")
	if _, err := b.Tx(t.Context(), key, [][]string{{"GET", key}}); err != nil {
		t.Fatal(err)
	}
	freeze(t, node)
	var waiting sync.WaitGroup
	started := make(chan struct{}, len(ways))
	for _, w := range ways {
		waiting.Go(func() {
			started <- struct{}{}
			if _, err := w.run(context.Background(), b, key, "GET", key); err == nil || !strings.HasPrefix(err.Error(), "rueidisbackend: ") {
				t.Errorf("%s, waiting: got %v", w.name, err)
			}
		})
	}
	for range ways {
		<-started
	}
	b.client.Close()
	waiting.Wait()
}

// A user who may not send MULTI gets an error, and none of the commands runs:
// without MULTI in front they would run one by one.
func TestRefusedMultiRunsNothing(t *testing.T) {
	c := sharedCluster(t)
	for _, n := range c.Nodes() {
		tell(t, n, "ACL", "SETUSER", "plain", "on", ">secret", "~*", "+@all", "-multi")
		defer n.Do(context.Background(), "ACL", "DELUSER", "plain")
	}
	b := connect(t, c, func(o *rueidis.ClientOption) { o.Username, o.Password = "plain", "secret" })
	for range 2 {
		_, err := b.Tx(t.Context(), "refused", [][]string{{"SET", "refused", "v"}})
		if err == nil || !strings.HasPrefix(err.Error(), "NOPERM ") {
			t.Errorf("got %v, want NOPERM", err)
		}
	}
	if v, err := b.Do(t.Context(), "refused", []string{"GET", "refused"}); v != nil || err != nil {
		t.Errorf("a command of the refused transaction ran: %v, %v", v, err)
	}
}
